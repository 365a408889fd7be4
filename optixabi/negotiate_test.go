//go:build !nocuda && (linux || windows)

package optixabi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/cuda/dl"
	"github.com/raymux/raymux/optixabi"
	"github.com/raymux/raymux/optixabi/fakeoptix"
)

const query = "optixQueryFunctionTable"

// TestNegotiationMatrix asks a library whose answer for each ABI is one of
// four: accepted, unknown, wrong table size, a function left out. All 256
// combinations are tried, with and without the untested ABI; the expected
// outcome is that of the first ABI, newest first, that is not unknown.
func TestNegotiationMatrix(t *testing.T) {
	newest := []optixabi.ABI{optixabi.ABI118, optixabi.ABI105, optixabi.ABI93, optixabi.ABI87}
	for combination := range 256 {
		answers := map[optixabi.ABI]fakeoptix.Answer{}
		choice := map[optixabi.ABI]int{}
		for i, abi := range newest {
			choice[abi] = combination >> (2 * i) & 3
			switch choice[abi] {
			case 0:
				answers[abi] = fakeoptix.Answer{}
			case 2:
				answers[abi] = fakeoptix.Answer{Result: optixabi.ErrorFunctionTableSizeMismatch}
			case 3:
				answers[abi] = fakeoptix.Answer{Null: "optixLaunch"}
			}
		}
		f := newFake(t, fakeoptix.Config{ABIs: answers})
		for _, untested := range []bool{false, true} {
			asked := newest
			if !untested {
				asked = newest[1:]
			}
			var decided optixabi.ABI
			queries := 0
			for _, abi := range asked {
				queries++
				if choice[abi] != 1 {
					decided = abi
					break
				}
			}
			before := f.Calls(query)
			table, err := f.Library().Negotiate(optixabi.NegotiateOptions{Untested: untested})
			name := fmt.Sprintf("combination %08b, untested %v", combination, untested)
			assert.Equal(t, queries, f.Calls(query)-before, name)
			var failed *optixabi.OpenError
			switch {
			case decided == 0:
				require.ErrorAs(t, err, &failed, name)
				assert.Equal(t, optixabi.ErrDriverTooOld, failed.Reason, name)
				assert.ErrorIs(t, err, optixabi.ErrorUnsupportedABIVersion)
				assert.True(t, optixabi.Unavailable(err))
			case choice[decided] == 0:
				require.NoError(t, err, name)
				assert.Equal(t, decided, table.ABI(), name)
			case choice[decided] == 2:
				require.ErrorAs(t, err, &failed, name)
				assert.Equal(t, optixabi.ErrTableSize, failed.Reason, name)
				assert.Equal(t, decided, failed.ABI, name)
				assert.False(t, optixabi.Unavailable(err), "a defect is not the absence of OptiX")
			default:
				require.ErrorAs(t, err, &failed, name)
				assert.Equal(t, optixabi.ErrNullEntry, failed.Reason, name)
				assert.Equal(t, "optixLaunch", failed.Detail, name)
				assert.False(t, optixabi.Unavailable(err))
			}
		}
		assert.Zero(t, f.Calls(""), "no function of a table is called while negotiating")
		f.Close()
	}
}

// TestNullEntries leaves out every function of every ABI in turn.
func TestNullEntries(t *testing.T) {
	for _, abi := range allABIs {
		for name := range optixabi.Functions() {
			f := newFake(t, fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{abi: {Null: name}}})
			_, err := f.Library().Negotiate(optixabi.NegotiateOptions{Untested: true})
			assert.ErrorIs(t, err, optixabi.ErrNullEntry)
			assert.ErrorContains(t, err, name)
			f.Close()
		}
	}
}

// TestAnswers checks the reason and hint of every other answer, that each is
// different, and that it ends the search.
func TestAnswers(t *testing.T) {
	tests := []struct {
		code   optixabi.Result
		reason error
		hint   string
	}{
		{optixabi.ErrorFunctionTableSizeMismatch, optixabi.ErrTableSize, "defect of Raymux"},
		{optixabi.ErrorInvalidEntryFunctionOptions, optixabi.ErrQueryOptions, "defect of Raymux"},
		{optixabi.ErrorLibraryNotFound, optixabi.ErrDriverIncomplete, "NVIDIA_DRIVER_CAPABILITIES"},
		{optixabi.ErrorEntrySymbolNotFound, optixabi.ErrDriverIncomplete, "different versions"},
		{optixabi.ErrorNotSupported, optixabi.ErrDriverFailed, "does not support OptiX"},
		{optixabi.ErrorInternalError, optixabi.ErrDriverFailed, ""},
	}
	for _, tt := range tests {
		f := newFake(t, fakeoptix.Config{
			ABIs: map[optixabi.ABI]fakeoptix.Answer{optixabi.ABI105: {Result: tt.code}, optixabi.ABI93: {}, optixabi.ABI87: {}},
			Path: "/fake/libnvoptix.so.580.159.03",
		})
		_, err := f.Library().Negotiate(optixabi.NegotiateOptions{})
		var failed *optixabi.OpenError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, tt.reason, failed.Reason)
		assert.Equal(t, optixabi.ABI105, failed.ABI)
		assert.ErrorIs(t, err, tt.code)
		assert.Equal(t, 1, f.Calls(query))
		for _, want := range []string{tt.reason.Error(), tt.code.Name(), "libnvoptix", "driver 580.159.03", "ABI 105", tt.hint} {
			assert.ErrorContains(t, err, want)
		}
		f.Close()
	}
}

// TestTooOld: the error names what each ABI would need and what there is.
func TestTooOld(t *testing.T) {
	f := newFake(t, fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{}, Path: "/fake/libnvoptix.so.525.60.13"})
	_, err := f.Library().Negotiate(optixabi.NegotiateOptions{})
	for _, want := range []string{
		"driver 525.60.13", "ABI 105 (OptiX 9.0.0, driver branch 570)", "ABI 93 (OptiX 8.1.0, driver branch 555)", "ABI 87 (OptiX 8.0.0, driver branch 535)",
		"update the NVIDIA driver to branch 535 or newer",
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "118")
}

// TestOnly asks for one ABI of a library that knows them all.
func TestOnly(t *testing.T) {
	f := newFake(t, fakeoptix.Config{ABIs: map[optixabi.ABI]fakeoptix.Answer{
		optixabi.ABI87: {}, optixabi.ABI93: {}, optixabi.ABI105: {}, optixabi.ABI118: {}, 104: {},
	}})
	for _, abi := range allABIs {
		table, err := f.Library().Negotiate(optixabi.NegotiateOptions{Only: abi})
		require.NoError(t, err)
		assert.Equal(t, abi, table.ABI())
	}
	before := f.Calls(query)
	_, err := f.Library().Negotiate(optixabi.NegotiateOptions{Only: 104})
	assert.ErrorContains(t, err, "ABI 104 is not among ABI 118 (")
	assert.Equal(t, before, f.Calls(query), "private numbers are never asked for")
	old := newFake(t, fakeoptix.Config{ABIs: onlyABI(optixabi.ABI87)})
	_, err = old.Library().Negotiate(optixabi.NegotiateOptions{Only: optixabi.ABI105})
	assert.ErrorIs(t, err, optixabi.ErrDriverTooOld)
	assert.ErrorContains(t, err, "branch 570")
}

// TestNoEntryPoint: a library that does not export the query.
func TestNoEntryPoint(t *testing.T) {
	_, err := optixabi.New(dl.New("/some/lib.so", func(string) uintptr { return 0 }))
	assert.ErrorIs(t, err, optixabi.ErrLibraryUnusable)
	assert.ErrorContains(t, err, query)
}
