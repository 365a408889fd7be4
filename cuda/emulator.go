package cuda

import (
	"errors"

	"github.com/raymux/raymux/cuda/emu"
)

// OpenEmulator opens n virtual devices of the pure Go emulator, 1 to 64. It
// needs no GPU and no driver, and differs from Open only in speed, and in that
// leak reports always name where resources were made. To give options of this
// package too, pass the result of emu.New to OpenAPI. A number or an option that is
// out of range is an *ArgumentError. Cost: as OpenAPI.
func OpenEmulator(n int, opts ...emu.Option) (*Driver, error) {
	e, err := emu.New(n, opts...)
	var arg *emu.ArgumentError
	if errors.As(err, &arg) {
		return nil, badArg("OpenEmulator", arg.Arg, "%s", arg.Detail)
	}
	if err != nil {
		return nil, err
	}
	return OpenAPI(e, WithLeakSites())
}
