package multi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/ptx"
)

// Link is what New found about one directed pair: whether kernels of From may
// access memory of To, whether bytes arrive as they were sent, and how rows are
// best reached.
type Link struct {
	From int `json:"from"` // ordinal of the device whose kernels and copies act
	To   int `json:"to"`   // ordinal of the device whose memory is accessed
	// Access is what the driver says.
	Access bool `json:"access"`
	// Atomics is whether it says that kernels of From may add to memory of To while others do.
	Atomics bool `json:"atomics"`
	// Wrong words of the self-test, of TestWords each: a copy from From to
	// To, a kernel on From writing to To, a kernel on From reading from To, and
	// with Atomics a kernel on From adding to To.
	CopyWrong  uint64 `json:"copy_wrong"`
	WriteWrong uint64 `json:"write_wrong"`
	ReadWrong  uint64 `json:"read_wrong"`
	AddWrong   uint64 `json:"add_wrong"`
	// DirectTime is that of a kernel of From that reads 24 bytes and writes 4 bytes for
	// each of 2^20 rows on To, CopyTime that of copies of the same bytes. 0: not measured.
	DirectTime time.Duration `json:"direct_ns"`
	CopyTime   time.Duration `json:"copy_ns"`
	// Transport is how kernels of From best get at rows on To: Direct where that takes at
	// most 1.5 times as long as copies or was not measured, Copy where it takes longer, Host
	// without working peer access.
	Transport chunked.Transport `json:"transport"`
	// Err is why the test could not run.
	Err error `json:"-"`
}

// TestWords is the size of the self-test in 4-byte words: 1 MiB.
const TestWords = 1 << 18

// OK reports whether peer access works in this direction.
func (l Link) OK() bool {
	return l.Access && l.Err == nil && l.CopyWrong == 0 && l.WriteWrong == 0 && l.ReadWrong == 0 && l.AddWrong == 0
}

// Trouble says in words why the link is not OK, or that it works.
func (l Link) Trouble() string {
	switch {
	case l.Err != nil:
		return fmt.Sprintf("the self-test failed: %v", l.Err)
	case !l.Access:
		return "the driver offers no peer access"
	case !l.OK():
		return fmt.Sprintf("CORRUPT: of %d words, wrong after a copy %d, a kernel write %d, a kernel read %d, additions %d",
			TestWords, l.CopyWrong, l.WriteWrong, l.ReadWrong, l.AddWrong)
	}
	return "works"
}

// String is the pair, what Trouble says, and how rows are reached.
func (l Link) String() string {
	text := fmt.Sprintf("%s: %s, transport %s", pair(l.From, l.To), l.Trouble(), l.Transport)
	if l.Atomics {
		text += ", atomics"
	}
	if l.CopyTime > 0 {
		text += fmt.Sprintf(", rows by a kernel in %s, by copies in %s", ms(float64(l.DirectTime)), ms(float64(l.CopyTime)))
	}
	return text
}

// pair names a directed pair of devices.
func pair(from, to int) string { return fmt.Sprintf("device %d -> %d", from, to) }

// Parameters of the kernels of module link.
type (
	peerFillParams struct {
		Dst, Count     uint64
		Seed, Reserved uint32
	}
	peerCheckParams struct {
		Src, Count, Mismatches uint64
		Seed, Reserved         uint32
	}
	peerAddParams struct {
		Dst, Count uint64
		From, To   uint32
	}
)

var (
	peerFillKernel  = ptx.Entry[peerFillParams]{Module: "link", Name: "peer_fill"}
	peerCheckKernel = ptx.Entry[peerCheckParams]{Module: "link", Name: "peer_check"}
	peerAddKernel   = ptx.Entry[peerAddParams]{Module: "link", Name: "peer_add"}
)

// linkGrid and linkBlock are enough threads for the test; they stride.
var linkGrid, linkBlock = cuapi.D1(128), cuapi.D1(256)

// endpoint is one device's side of the self-test.
type endpoint struct {
	ctx              *cuda.Context
	stream           *cuda.Stream
	module           *cuda.Module
	fill, check, add *cuda.Function
	buf              cuda.Slice[uint32]
	wrong            cuda.Slice[uint64]

	// Of the transport probe, if there is one.
	across   *cuda.Function
	rows     cuda.Slice[uint32]
	from, to *cuda.Event
}

func newEndpoint(c *cuda.Context, words, rows int) (e *endpoint, err error) {
	e = &endpoint{ctx: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	text, err := ptx.Module(peerFillKernel.Module)
	if err != nil {
		return e, err
	}
	if e.stream, err = c.NewStream(cuda.StreamOptions{}); err != nil {
		return e, err
	}
	if e.module, err = c.LoadModule(text, cuda.JITOptions{}); err != nil {
		return e, err
	}
	if e.fill, err = e.module.Function(peerFillKernel.Name); err != nil {
		return e, err
	}
	if e.check, err = e.module.Function(peerCheckKernel.Name); err != nil {
		return e, err
	}
	if e.add, err = e.module.Function(peerAddKernel.Name); err != nil {
		return e, err
	}
	if e.buf, err = cuda.Alloc[uint32](c, words); err != nil {
		return e, err
	}
	if e.wrong, err = cuda.Alloc[uint64](c, 1); err != nil {
		return e, err
	}
	return e, e.batch(rows)
}

// close gives everything back and returns the first failure.
func (e *endpoint) close() error {
	errs := []error{e.from.Close(), e.to.Close()}
	if !e.rows.IsNil() {
		errs = append(errs, cuda.Free(e.rows))
	}
	if !e.wrong.IsNil() {
		errs = append(errs, cuda.Free(e.wrong))
	}
	if !e.buf.IsNil() {
		errs = append(errs, cuda.Free(e.buf))
	}
	if e.module != nil {
		errs = append(errs, e.module.Close())
	}
	if e.stream != nil {
		errs = append(errs, e.stream.Close())
	}
	return firstError(errs)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// pattern writes the pattern of seed into dst with a kernel of this device.
func (e *endpoint) pattern(dst cuda.Slice[uint32], seed uint32) error {
	p := peerFillParams{Dst: dst.Addr(), Count: uint64(dst.Len()), Seed: seed}
	if err := e.fill.Launch(e.stream, linkGrid, linkBlock, 0, cuda.ParamBytes(&p)); err != nil {
		return err
	}
	return e.stream.Synchronize(context.Background())
}

// change makes the pattern of one seed of that of another, by additions of 64 bits of a kernel of
// this device.
func (e *endpoint) change(dst cuda.Slice[uint32], from, to uint32) error {
	p := peerAddParams{Dst: dst.Addr(), Count: uint64(dst.Len() / 2), From: from, To: to}
	if err := e.add.Launch(e.stream, linkGrid, linkBlock, 0, cuda.ParamBytes(&p)); err != nil {
		return err
	}
	return e.stream.Synchronize(context.Background())
}

// mismatches counts the words of src that differ from the pattern, as a
// kernel of this device reads them.
func (e *endpoint) mismatches(src cuda.Slice[uint32], seed uint32) (uint64, error) {
	if err := cuda.Fill8(e.stream, e.wrong, 0); err != nil {
		return 0, err
	}
	p := peerCheckParams{Src: src.Addr(), Count: uint64(src.Len()), Mismatches: e.wrong.Addr(), Seed: seed}
	if err := e.check.Launch(e.stream, linkGrid, linkBlock, 0, cuda.ParamBytes(&p)); err != nil {
		return 0, err
	}
	n, err := cuda.Download(context.Background(), e.stream, e.wrong)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// testLink enables peer access from a to b and tests it. Every pattern has
// its own seed and replaces another one, so bytes that did not move at all
// count as wrong.
func testLink(a, b *endpoint) Link {
	l := Link{From: a.ctx.Device().Ordinal(), To: b.ctx.Device().Ordinal()}
	if l.Access, l.Err = a.ctx.Device().CanAccessPeer(b.ctx.Device()); !l.Access || l.Err != nil {
		return l
	}
	if l.Atomics, l.Err = a.ctx.Device().PeerAtomics(b.ctx.Device()); l.Err != nil {
		return l
	}
	if l.Err = a.ctx.EnablePeer(b.ctx); l.Err != nil {
		return l
	}
	seed := uint32(l.From)<<16 | uint32(l.To)<<4
	steps := []func() error{
		func() error { return b.pattern(b.buf, ^seed) },
		func() error { return a.pattern(a.buf, seed+1) },
		func() error { return cuda.CopyAsync(a.stream, b.buf, a.buf) },
		func() error { return a.stream.Synchronize(context.Background()) },
		func() (err error) { l.CopyWrong, err = b.mismatches(b.buf, seed+1); return err },
		func() error { return a.pattern(b.buf, seed+2) },
		func() (err error) { l.WriteWrong, err = b.mismatches(b.buf, seed+2); return err },
		func() error { return b.pattern(b.buf, seed+3) },
		func() (err error) { l.ReadWrong, err = a.mismatches(b.buf, seed+3); return err },
	}
	if l.Atomics {
		steps = append(steps,
			func() error { return a.change(b.buf, seed+3, seed+4) },
			func() (err error) { l.AddWrong, err = b.mismatches(b.buf, seed+4); return err })
	}
	for _, step := range steps {
		if l.Err = step(); l.Err != nil {
			break
		}
	}
	return l
}

// testLinks tests both directions between the master and each remote, with
// patterns of so many words, and times so many rows across those that work.
func testLinks(ctxs []*cuda.Context, words, rows int) (links []Link, err error) {
	ends := make([]*endpoint, 0, len(ctxs))
	defer func() {
		for p, e := range ends {
			if cerr := e.close(); cerr != nil && err == nil {
				err = newDeviceError(p, e.ctx.Device().Ordinal(), "ending the peer self-test", chunked.Range{}, cerr)
			}
		}
	}()
	for p, c := range ctxs {
		e, err := newEndpoint(c, words, rows)
		if err != nil {
			return nil, newDeviceError(p, c.Device().Ordinal(), "preparing the peer self-test", chunked.Range{}, err)
		}
		ends = append(ends, e)
	}
	for _, remote := range ends[1:] {
		for _, pair := range [][2]*endpoint{{ends[0], remote}, {remote, ends[0]}} {
			l := testLink(pair[0], pair[1])
			if rows > 0 && l.OK() {
				l.DirectTime, l.CopyTime, l.Err = pair[0].rule(pair[1])
			}
			l.Transport = l.choose()
			links = append(links, l)
		}
	}
	return links, nil
}
