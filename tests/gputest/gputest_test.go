package gputest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMissingDevicesAreSaidSo(t *testing.T) {
	for _, c := range []struct {
		devices, emulated, require string
		n, upTo                    int
		skipped, failed            string
	}{
		{"", "", "", 8, 8, "", ""},
		{"", "3", "", 3, 3, "", ""},
		{"", "3", "", 4, 3, "NOT VERIFIED: needs 4 CUDA devices, found 3", ""},
		{"", "3", "3", 4, 3, "NOT VERIFIED: needs 4 CUDA devices, found 3", ""},
		{"0", "", "", 1, 1, "", ""},
		{"0", "", "", 2, 1, "NOT VERIFIED: needs 2 CUDA devices, found 1", ""},
		{"0", "5", "2", 2, 1, "", "NOT VERIFIED: needs 2 CUDA devices, found 1"},
		{"0,1", "", "2", 2, 2, "", ""},
	} {
		t.Setenv(DevicesVariable, c.devices)
		t.Setenv(EmulatedVariable, c.emulated)
		t.Setenv(RequireVariable, c.require)
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Need(r, c.n)
		}()
		<-done
		require.Equal(t, [2]string{c.skipped, c.failed}, [2]string{r.skipped, r.failed}, "%+v", c)
		require.Equal(t, c.upTo, UpTo(c.n), "%+v", c)
	}
}
