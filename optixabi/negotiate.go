package optixabi

import (
	"fmt"
	"strings"

	"github.com/raymux/raymux/cuda/dl"
)

// NegotiateOptions refine Negotiate.
type NegotiateOptions struct {
	// Untested asks for ABI 118 first. Its layout is generated and checked
	// like the others, but no driver that knows it has run our programs yet.
	Untested bool
	// Only asks for one ABI and no other; 0 asks for the newest.
	Only ABI
}

// Negotiate agrees on the newest ABI that the library and this package know.
// A CUDA context has to be current. The error is an *OpenError whose reason is
// ErrDriverTooOld, ErrDriverIncomplete, ErrTableSize, ErrQueryOptions,
// ErrNullEntry or ErrDriverFailed. Only an unknown ABI leads to the next older
// one; any other answer ends the search, because it would hide a defect.
func (l *Library) Negotiate(o NegotiateOptions) (*Table, error) {
	abis := negotiated
	switch {
	case o.Only != 0 && o.Only.facts() == nil:
		return nil, fmt.Errorf("optixabi: ABI %v is not among %s", o.Only, offered(append([]ABI{ABI118}, abis...)))
	case o.Only != 0:
		abis = []ABI{o.Only}
	case o.Untested:
		abis = append([]ABI{ABI118}, abis...)
	}
	for _, abi := range abis {
		t, code := l.ask(abi)
		switch code {
		case Success:
			if f, missing := t.missing(); missing {
				return nil, l.refused(ErrNullEntry, abi, code, functionNames[f], "reinstall the NVIDIA driver; with an intact one this is a defect of Raymux")
			}
			return t, nil
		case ErrorUnsupportedABIVersion:
			continue
		case ErrorFunctionTableSizeMismatch:
			return nil, l.refused(ErrTableSize, abi, code, fmt.Sprintf("%d bytes offered", abi.TableSize()), "this is a defect of Raymux: please report it with the driver version")
		case ErrorInvalidEntryFunctionOptions:
			return nil, l.refused(ErrQueryOptions, abi, code, "", "this is a defect of Raymux: please report it with the driver version")
		case ErrorLibraryNotFound, ErrorEntrySymbolNotFound:
			return nil, l.refused(ErrDriverIncomplete, abi, code, "", "the libraries of the driver are of different versions or not all installed (libnvidia-rtcore, libnvidia-ptxjitcompiler): reinstall it, or in a container add graphics to NVIDIA_DRIVER_CAPABILITIES")
		default:
			return nil, l.refused(ErrDriverFailed, abi, code, "", hints[code])
		}
	}
	return nil, l.refused(ErrDriverTooOld, 0, ErrorUnsupportedABIVersion, "it knows none of "+offered(abis),
		fmt.Sprintf("update the NVIDIA driver to branch %d or newer, or use the CUDA backend", abis[len(abis)-1].DriverBranch()))
}

// ask queries the table of one ABI. What the library does not fill stays 0.
func (l *Library) ask(abi ABI) (*Table, Result) {
	facts := abi.facts()
	entries := make([]uintptr, facts.size/8)
	b := getBlock()
	defer b.put()
	args := append(b.args[:0], uintptr(abi), 0, 0, 0, pin(b, &entries[0]), uintptr(facts.size))
	if code := Result(int32(dl.Call(l.query, args...))); code != Success {
		return nil, code
	}
	t := &Table{lib: l, facts: facts, logs: map[DeviceContext]uintptr{}}
	for f, slot := range facts.slots {
		t.fns[f] = entries[slot]
	}
	return t, Success
}

// missing finds a function without an address.
func (t *Table) missing() (function, bool) {
	for f, fn := range t.fns {
		if fn == 0 {
			return function(f), true
		}
	}
	return 0, false
}

func (l *Library) refused(reason error, abi ABI, code Result, detail, hint string) error {
	return &OpenError{Reason: reason, Path: l.path, Driver: l.driver, ABI: abi, Code: code, Detail: detail, Hint: hint}
}

// offered lists ABIs with the drivers that they need.
func offered(abis []ABI) string {
	var words []string
	for _, a := range abis {
		words = append(words, fmt.Sprintf("ABI %v (OptiX %s, driver branch %d)", a, a.OptiX(), a.DriverBranch()))
	}
	return strings.Join(words, ", ")
}
