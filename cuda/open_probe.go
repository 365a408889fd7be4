package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/dl"
)

// Report says what a machine offers. Every field is filled as far as the probe
// came; Problem says what stopped it.
type Report struct {
	Platform     string         // GOOS/GOARCH
	Library      string         // file of the driver library; empty when none was loaded
	Attempts     []dl.Attempt   // paths that could not be used
	Version      int            // driver's CUDA version, 1000*major + 10*minor
	KernelDriver string         // version line of the kernel module
	Container    bool           // the process runs in a container
	WSL          bool           // it runs in the Windows Subsystem for Linux
	DeviceNodes  []string       // files through which the driver reaches GPUs
	Missing      []SymbolError  // optional entry points that the driver lacks
	Devices      []DeviceReport // in the driver's order
	Problem      error          // nil when Open would succeed
}

// DeviceReport describes one GPU.
type DeviceReport struct {
	Ordinal      int    // number in the driver, from 0
	Name         string // of the product
	Major, Minor int    // compute capability
	TotalMem     uint64 // bytes
	Err          error  // the first failed query
}

// Probe reports what is there. It creates no context, takes the options of
// Open, and never falls back to the emulator.
func Probe(opts ...Option) Report {
	cfg, m := newConfig(opts), thisMachine()
	rep := m.report()
	lib, err := openLibrary(cfg, m)
	if err != nil {
		rep.Problem = err
		var tried *dl.OpenError
		if errors.As(err, &tried) {
			rep.Attempts = tried.Attempts
		}
		return rep
	}
	rep.ask(lib)
	return rep
}

// report fills in what can be told without the driver.
func (m machine) report() Report {
	return Report{
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
		KernelDriver: m.kernelDriver(),
		Container:    m.container(),
		WSL:          m.wsl(),
		DeviceNodes:  m.deviceNodes(),
	}
}

// ask fills in what the driver says.
func (r *Report) ask(lib *dl.Library) {
	r.Library = lib.Path()
	var api *native
	if api, r.Version, r.Problem = start(lib); r.Problem != nil {
		return
	}
	r.Missing = api.missing()
	var n int
	if n, r.Problem = countDevices(api, r.Library, r.Version); r.Problem != nil {
		return
	}
	for i := range n {
		r.Devices = append(r.Devices, describe(api, i))
	}
}

// describe asks for one device and keeps going after a failed query.
func describe(api cuapi.API, ordinal int) DeviceReport {
	rep := DeviceReport{Ordinal: ordinal}
	keep := func(op string, res cuapi.Result) {
		if res != cuapi.Success && rep.Err == nil {
			rep.Err = newError(op, res, ordinal, "")
		}
	}
	d, res := api.DeviceGet(ordinal)
	if keep("DeviceGet", res); res != cuapi.Success {
		return rep
	}
	rep.Name, res = api.DeviceGetName(d)
	keep("DeviceGetName", res)
	rep.Major, res = api.DeviceGetAttribute(cuapi.AttrComputeCapabilityMajor, d)
	keep("DeviceGetAttribute", res)
	rep.Minor, res = api.DeviceGetAttribute(cuapi.AttrComputeCapabilityMinor, d)
	keep("DeviceGetAttribute", res)
	rep.TotalMem, res = api.DeviceTotalMem(d)
	keep("DeviceTotalMem", res)
	return rep
}

// OK reports whether Open would succeed.
func (r Report) OK() bool { return r.Problem == nil }

// String is a text of several lines for people.
func (r Report) String() string {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", key, fmt.Sprintf(format, args...))
	}
	line("platform", "%s", r.Platform)
	if r.Library != "" {
		line("library", "%s", r.Library)
	}
	if r.Version != 0 {
		line("CUDA", "%s", versionText(r.Version))
	}
	if r.KernelDriver != "" {
		line("kernel module", "%s", r.KernelDriver)
	}
	line("container", "%t", r.Container)
	line("WSL", "%t", r.WSL)
	line("device nodes", "%d", len(r.DeviceNodes))
	for _, a := range r.Attempts {
		line("tried", "%v", a)
	}
	for _, s := range r.Missing {
		line("missing", "%s (CUDA %s)", s.Name, s.Since)
	}
	for _, d := range r.Devices {
		line("device", "%d: %s, compute capability %d.%d, %d MiB", d.Ordinal, d.Name, d.Major, d.Minor, d.TotalMem>>20)
		if d.Err != nil {
			line("", "%v", d.Err)
		}
	}
	if r.Problem != nil {
		line("problem", "%v", r.Problem)
	}
	return b.String()
}
