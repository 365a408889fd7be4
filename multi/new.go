package multi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// New makes a scene over devices, given by ordinal, the master first. The
// order matters: it is the order of weights and shards.
//
// Checks, in this order and with nothing created when one fails: the list
// (empty, duplicates, range: ErrDeviceList), the options
// (*chunked.OptionError), equality of the devices (ErrMixed, unless
// AllowMixedDevices), peer access between the master and each remote in both
// directions, with a self-test of 1 MiB by copy, by kernel writes, by
// kernel reads, and by additions of kernels where the driver offers atomics on
// the link (*PeerError, unless AllowNoPeerAccess).
//
// With one device there is no self-test, no private stream and no split:
// every call is that of the plain scene.
//
// The transport Auto is decided here, for each of these links by measurement and never
// by its name (Link.Transport); the set uses the weakest of them, Direct before Copy before
// Host. On emulated devices, whose times mean nothing, every link that works is Direct.
//
// Cost: it retains the primary context of every device, which starts those
// that the process has not used yet, and waits for the self-tests. Auto adds, for each
// remote, 16 transfers of 28 MiB and that much memory on both devices meanwhile: about 3 ms
// over NVLink, 20 ms over PCIe.
func New(drv *cuda.Driver, devices []int, opts Options) (*Scene, error) {
	return create(drv, devices, opts, TestWords)
}

// create is New with links tested by patterns of so many words.
func create(drv *cuda.Driver, devices []int, opts Options, words int) (s *Scene, err error) {
	if drv == nil {
		return nil, fmt.Errorf("%w: no driver: open one with cuda.Open or cuda.OpenEmulator", ErrDeviceList)
	}
	if err := checkDevices(drv, devices); err != nil {
		return nil, err
	}
	if err := opts.Options.Check(len(devices)); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = drv.Logger()
	}
	if err := checkSame(drv, devices, &opts); err != nil {
		return nil, err
	}
	opts.Options = owned(opts.Options)
	s = &Scene{drv: drv, devices: slices.Clone(devices), opts: opts}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
			s = nil
		}
	}()
	for p, ordinal := range devices {
		dev, err := drv.Device(ordinal)
		if err != nil {
			return s, err
		}
		c, err := dev.Retain()
		if err != nil {
			return s, newDeviceError(p, ordinal, "retaining the primary context", chunked.Range{}, err)
		}
		s.ctxs = append(s.ctxs, c)
	}
	if len(devices) > 1 {
		rows := ruleRows
		if opts.Transport != chunked.Auto || drv.Emulated() {
			rows = 0
		}
		if s.links, err = testLinks(s.ctxs, words, rows); err != nil {
			return s, err
		}
	}
	if s.transport, err = resolve(s.links, opts); err != nil {
		return s, err
	}
	s.atomics = !slices.ContainsFunc(s.links, func(l Link) bool { return l.To == devices[0] && !(l.Atomics && l.OK()) })
	return s, s.open()
}

// owned is a copy of options that their giver does not share.
func owned(o chunked.Options) chunked.Options {
	o.Weights = slices.Clone(o.Weights)
	o.OperationWeights = maps.Clone(o.OperationWeights)
	for key, w := range o.OperationWeights {
		o.OperationWeights[key] = slices.Clone(w)
	}
	return o
}

// checkDevices validates the list before any context exists.
func checkDevices(drv *cuda.Driver, devices []int) error {
	if len(devices) == 0 {
		return fmt.Errorf("%w: it is empty: give at least one ordinal", ErrDeviceList)
	}
	n := drv.DeviceCount()
	for p, d := range devices {
		if q := slices.Index(devices, d); q < p {
			return fmt.Errorf("%w: device %d stands at positions %d and %d: one replica per device", ErrDeviceList, d, q, p)
		}
	}
	for p, d := range devices {
		if d < 0 || d >= n {
			return fmt.Errorf("%w: position %d names device %d, the driver has %d, numbered from 0", ErrDeviceList, p, d, n)
		}
	}
	return nil
}

// checkSame refuses devices of different products.
func checkSame(drv *cuda.Driver, devices []int, opts *Options) error {
	if len(devices) < 2 || opts.AllowMixedDevices {
		return nil
	}
	ids := make([]identity, len(devices))
	text := make([]string, len(devices))
	mixed := false
	for p, ordinal := range devices {
		d, err := drv.Device(ordinal)
		if err != nil {
			return err
		}
		ids[p] = identityOf(d)
		text[p] = fmt.Sprintf("device %d is %s (%d.%d)", ordinal, ids[p].name, ids[p].major, ids[p].minor)
		mixed = mixed || ids[p] != ids[0]
		if first, err := drv.Device(devices[0]); err == nil && !mixed &&
			(d.Multiprocessors() != first.Multiprocessors() || d.TotalMem() != first.TotalMem()) {
			opts.Logger.Warn("devices of one name differ in size", "device", ordinal, "multiprocessors", d.Multiprocessors(), "bytes", d.TotalMem())
		}
	}
	if mixed {
		return fmt.Errorf("%w: %s. Equal weights would not mean equal times: set AllowMixedDevices and choose weights", ErrMixed, strings.Join(text, ", "))
	}
	return nil
}

// identity is what devices of one product have in common.
type identity struct {
	name         string
	major, minor int
}

func identityOf(d *cuda.Device) identity {
	id := identity{name: d.Name()}
	id.major, id.minor = d.Capability()
	return id
}

// resolve decides the transport from what the links showed.
func resolve(links []Link, opts Options) (chunked.Transport, error) {
	var broken []Link
	for _, l := range links {
		if !l.OK() {
			broken = append(broken, l)
			opts.Logger.Warn("no working peer access", "from", l.From, "to", l.To, "why", l.Trouble())
		}
	}
	if len(broken) > 0 && (!opts.AllowNoPeerAccess || opts.Transport == chunked.Direct) {
		return 0, &PeerError{broken}
	}
	if opts.Transport != chunked.Auto {
		return opts.Transport, nil
	}
	return weakest(links), nil
}

// open makes the scenes. Streams and events between them are made by the first call that
// needs them.
func (s *Scene) open() error {
	var others []*cuda.Device // that Auto has to ask too
	for _, c := range s.ctxs[1:] {
		others = append(others, c.Device())
	}
	for p, c := range s.ctxs {
		r := &replica{set: s, position: p, ordinal: s.devices[p], ctx: c}
		s.replicas = append(s.replicas, r)
		var err error
		r.scene, err = scene.New(c, scene.Options{
			Backend: s.opts.Backend, Builder: s.opts.Builder, Replicas: others, Logger: s.opts.Logger,
		})
		if err != nil {
			return r.fail("creating the scene", err)
		}
		if p > 0 {
			r.stream = r.scene.Stream()
		}
	}
	return nil
}

// Close releases every replica and context. It waits for calls that have
// their turn and for the sample of a running calibration, refuses later ones,
// and returns the first failure, also when it is called again. What only reads
// the set, like Version and Master, keeps working. Free results and uploads
// before it: what is still alive is reported as leaked.
// A nil scene closes without an error.
func (s *Scene) Close() error {
	if s == nil {
		return nil
	}
	done, err := s.beginClosing(context.Background())
	if err != nil {
		return err
	}
	defer done()
	if !s.closed.Swap(true) {
		s.closeErr = s.release()
	}
	return s.closeErr
}

// beginClosing takes the turn for a call that closes the set, after the sample of a running
// calibration. One that is refused, or that leaves the set open, has ended no other than that.
func (s *Scene) beginClosing(ctx context.Context) (done func(), err error) {
	if s.turn.inside(ctx) {
		return nil, ErrReentrant // for whose turn the calibration may be waiting
	}
	if err := s.split.end(ctx); err != nil {
		return nil, err
	}
	end, err := s.turn.take(ctx)
	if err != nil {
		s.split.resume()
		return nil, err
	}
	return func() {
		if !s.closed.Load() {
			s.split.resume()
		}
		end()
	}, nil
}

// release frees what exists, last first. The lists stay, for methods that read them.
func (s *Scene) release() error {
	var errs []error
	for _, r := range s.openTimes() {
		errs = append(errs, r.close())
	}
	for _, r := range slices.Backward(s.replicas) {
		errs = append(errs, r.release())
	}
	closed := make([]error, len(s.ctxs)) // each names what was left on its device
	for k, c := range slices.Backward(s.ctxs) {
		closed[k] = c.Close()
	}
	return attach(firstError(errs), errors.Join(closed...))
}
