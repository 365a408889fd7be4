package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/multi"
	"github.com/raymux/raymux/ptx"
	"github.com/raymux/raymux/scene"
	"github.com/raymux/raymux/tools/raymux/meshfile"
)

// infoReport is what `raymux info` prints, and its JSON form.
type infoReport struct {
	Driver   driverInfo   `json:"driver"`
	Devices  []deviceInfo `json:"devices"`
	Backend  backendInfo  `json:"backend"`
	Backends []tracerInfo `json:"backends"`
	OptiX    []optixInfo  `json:"optix,omitempty"` // one per device; absent where it cannot run
	Peers    []peerInfo   `json:"peers"`
	// Transport is how a batch would reach the other devices; empty for one device.
	Transport string  `json:"transport,omitempty"`
	PTX       ptxInfo `json:"ptx"`
}

type driverInfo struct {
	Emulated bool   `json:"emulated"`
	CUDA     string `json:"cuda"` // version that the driver supports
}

type deviceInfo struct {
	Ordinal         int    `json:"ordinal"`
	Name            string `json:"name"`
	Capability      string `json:"capability"`
	Multiprocessors int    `json:"multiprocessors"`
	MemoryBytes     uint64 `json:"memory_bytes"`
	PCIBusID        string `json:"pci_bus_id"`
	UUID            string `json:"uuid"`
}

// backendInfo is the tracer that a scene of these devices got, found out by building one.
type backendInfo struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// tracerInfo says of each tracer whether it can be used here.
type tracerInfo struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason"`
}

type peerInfo struct {
	From   int    `json:"from"`
	To     int    `json:"to"`
	Works  bool   `json:"works"`
	Result string `json:"result"`
	// Atomics is whether kernels of From may add to memory of To while others do.
	Atomics bool `json:"atomics"`
	// Transport is how the kernels of From best get at rows on To, from the times of a kernel that works across the link
	// and of copies of the same bytes; 0 where they were not measured, as on emulated devices.
	Transport string  `json:"transport"`
	DirectMS  float64 `json:"direct_ms"`
	CopyMS    float64 `json:"copy_ms"`
	// BytesPerSecond is the rate of a copy of probeBytes, 0 on emulated devices; without peer access the driver stages it
	// through the host.
	// BothBytesPerSecond is the sum of both rates when the other direction copies at the same time.
	BytesPerSecond     float64 `json:"bytes_per_second"`
	BothBytesPerSecond float64 `json:"both_bytes_per_second"`
}

// peers joins what is known about the links between the master and the others. Between two others nothing is sent.
func peers(links []multi.Link, speeds []multi.LinkSpeed) []peerInfo {
	list := []peerInfo{}
	for _, l := range links {
		p := peerInfo{From: l.From, To: l.To, Works: l.OK(), Result: l.Trouble(), Atomics: l.Atomics, Transport: l.Transport.String(),
			DirectMS: l.DirectTime.Seconds() * 1e3, CopyMS: l.CopyTime.Seconds() * 1e3}
		for _, s := range speeds {
			switch {
			case s.Both && (s.From == l.From && s.To == l.To || s.From == l.To && s.To == l.From):
				p.BothBytesPerSecond = s.BytesPerSecond()
			case !s.Both && s.From == l.From && s.To == l.To:
				p.BytesPerSecond = s.BytesPerSecond()
			}
		}
		list = append(list, p)
	}
	return list
}

// probeBytes is the copy that info measures a link with: long enough for its latency not to count.
const probeBytes = 128 << 20

type ptxInfo struct {
	// Claim is what is known about the kernels: "identity" means that every module is the one that the manifest names.
	Claim          string   `json:"claim"`
	ManifestDigest string   `json:"manifest_digest"`
	Modules        []string `json:"modules"`
}

// info prints what the machine offers.
func (p *program) info(ctx context.Context, args []string) error {
	var devices deviceList
	var backend scene.Backend
	fs := newFlagSet("info")
	fs.machine(&devices, &backend)
	verbose := fs.Bool("v", false, "also print what was searched for a driver, and the kernels' modules")
	asJSON := fs.Bool("json", false, "print JSON")
	if err := fs.parse(p, args); err != nil {
		return ignoreHelp(err)
	}
	if *verbose && !*asJSON && devices.emulated == 0 {
		fmt.Fprint(p.stdout, cuda.Probe())
	}
	r, err := p.inspect(ctx, devices, backend)
	if err != nil {
		return err
	}
	p.progress("")
	if *asJSON {
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	return r.print(p.stdout, *verbose)
}

// inspect opens the devices and builds a scene of one triangle on them, which loads the kernels and tests the links: what
// it reports has been tried.
func (p *program) inspect(ctx context.Context, list deviceList, backend scene.Backend) (r *infoReport, err error) {
	r = &infoReport{Peers: []peerInfo{}}
	if r.PTX, err = inspectPTX(); err != nil {
		return nil, err
	}
	e, err := p.openEngine(ctx, list, backend, chunked.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	triangle := meshfile.Mesh{Vertices: []float32{0, 0, 0, 1, 0, 0, 0, 1, 0}, Faces: []int32{0, 1, 2}}
	if err := e.load(ctx, []meshfile.Mesh{triangle}, withoutEdges); err != nil {
		return nil, err
	}
	r.Driver = driverInfo{Emulated: e.drv.Emulated(), CUDA: fmt.Sprintf("%d.%d", e.drv.Version()/1000, e.drv.Version()%1000/10)}
	for _, ordinal := range e.ordinals {
		d, err := e.drv.Device(ordinal)
		if err != nil {
			return nil, err
		}
		r.Devices = append(r.Devices, describeDevice(d))
	}
	master := e.scene.Master()
	r.Backend = backendInfo{master.Backend().String(), master.BackendReason()}
	r.Backends = []tracerInfo{
		{scene.CUDA.String(), true, "plain CUDA kernels, needs no other library"},
	}
	var tracer tracerInfo
	if tracer, r.OptiX, err = inspectOptiX(e.drv, e.ordinals); err != nil {
		return nil, err
	}
	r.Backends = append(r.Backends, tracer)
	var speeds []multi.LinkSpeed
	if !e.drv.Emulated() { // whose links have no speed
		if speeds, err = e.scene.MeasureLinks(ctx, probeBytes); err != nil {
			return nil, err
		}
	}
	r.Peers = peers(e.scene.Links(), speeds)
	if len(e.ordinals) > 1 {
		r.Transport = e.scene.Transport().String()
	}
	return r, nil
}

func describeDevice(d *cuda.Device) deviceInfo {
	major, minor := d.Capability()
	uuid := d.UUID()
	return deviceInfo{
		Ordinal:         d.Ordinal(),
		Name:            d.Name(),
		Capability:      fmt.Sprintf("%d.%d", major, minor),
		Multiprocessors: d.Multiprocessors(),
		MemoryBytes:     d.TotalMem(),
		PCIBusID:        d.PCIBusID(),
		UUID:            hex.EncodeToString(uuid[:]),
	}
}

// inspectPTX reads every module, which compares it with the manifest.
func inspectPTX() (ptxInfo, error) {
	names := ptx.Names()
	for _, name := range names {
		if _, err := ptx.Module(name); err != nil {
			return ptxInfo{}, err
		}
	}
	return ptxInfo{Claim: "identity", ManifestDigest: ptx.ManifestDigest(), Modules: names}, nil
}

func (r *infoReport) print(w io.Writer, verbose bool) error {
	kind := "NVIDIA"
	if r.Driver.Emulated {
		kind = "emulator"
	}
	pr := &printer{w: w}
	pr.linef("driver     %s, CUDA %s", kind, r.Driver.CUDA)
	for _, d := range r.Devices {
		pr.linef("device     dev%d  %s, compute capability %s, %d multiprocessors, %d MiB, %s", d.Ordinal, d.Name, d.Capability,
			d.Multiprocessors, d.MemoryBytes>>20, d.PCIBusID)
	}
	pr.linef("backend    %s (%s)", r.Backend.Name, r.Backend.Reason)
	for _, t := range r.Backends {
		state := "available"
		if !t.Available {
			state = "unavailable"
		}
		pr.linef("           %s: %s (%s)", t.Name, state, t.Reason)
	}
	for _, l := range r.Peers {
		rate, rule, atomics := "", "", "no atomics"
		if l.Atomics {
			atomics = "atomics"
		}
		if l.BytesPerSecond > 0 {
			rate = fmt.Sprintf(", copies at %.1f GB/s, with the way back %.1f GB/s", l.BytesPerSecond/1e9, l.BothBytesPerSecond/1e9)
		}
		if l.CopyMS > 0 {
			rule = fmt.Sprintf(" (2^20 rows in %.3f ms directly, %.3f ms by copies)", l.DirectMS, l.CopyMS)
		}
		pr.linef("peer       dev%d -> dev%d: %s%s; %s%s, %s", l.From, l.To, l.Result, rate, l.Transport, rule, atomics)
	}
	if r.Transport != "" {
		pr.linef("transport  %s", r.Transport)
	}
	pr.linef("PTX        claim: %s (every module has the digest of the manifest %s)", r.PTX.Claim, r.PTX.ManifestDigest)
	if verbose {
		for _, m := range r.PTX.Modules {
			pr.linef("           module %s", m)
		}
	}
	printOptiX(pr, r.OptiX, verbose)
	return pr.err
}

// printer keeps the first write error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) linef(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
