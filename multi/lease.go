package multi

import (
	"context"
	"slices"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// slotAlign separates the columns of a slot, so that each starts on a cache line.
const slotAlign = 256

// searchStreams is how many streams of a device take its chunks in turn: as many as there
// are slots. A search ends with the few rays that take longest, and meanwhile the next
// chunk fills the device.
const searchStreams = chunked.RemoteSlots

// pipe is the streams and events by which the chunks of a call find their way over one
// device. It is made when it is first needed and kept, because making it costs more than
// using it. A wait captures the recording of its event when it is enqueued, and calls
// submit one after the other, so that one set serves every call.
type pipe struct {
	search  []*cuda.Stream // of devices with several chunks
	in, out *cuda.Stream   // copies to and from the remote

	// Rings, by the number of a chunk on its device.
	computed []*cuda.Event // the search has run
	copied   []*cuda.Event // the inputs are on the remote
	sent     []*cuda.Event // the winners have left the remote's slot
	fetched  []*cuda.Event // of the master: it has them

	// Of the master: a stream whose kernels go before those that wait for a place on the
	// device, what marks the end of a finalize on it, and a stream on which it fetches winners.
	finalize  *cuda.Stream
	finalized *cuda.Event
	fetch     *cuda.Stream

	exit *cuda.Event // the end of a stream of a call that failed
	host *hostPipe   // of the Host transport
}

// ring is the event of a chunk. Rings are longer than a chunk of a device can be ahead of
// the one that is being retired, so that nobody waits for a later chunk than needed.
func ring(events []*cuda.Event, seq int) *cuda.Event { return events[seq%len(events)] }

// ringLength is that of rings: a device has as many chunks on their way as there are slots.
const ringLength = chunked.RemoteSlots + 1

// grow makes events until there are n.
func grow(c *cuda.Context, events *[]*cuda.Event, n int) error {
	for len(*events) < n {
		e, err := c.NewEvent(cuda.EventOptions{})
		if err != nil {
			return err
		}
		*events = append(*events, e)
	}
	return nil
}

func one(c *cuda.Context, e **cuda.Event) (err error) {
	if *e == nil {
		*e, err = c.NewEvent(cuda.EventOptions{})
	}
	return err
}

func stream(c *cuda.Context, st **cuda.Stream) (err error) {
	if *st == nil {
		*st, err = c.NewStream(cuda.StreamOptions{})
	}
	return err
}

// first is stream with the highest priority that there is, to which the driver limits this
// one.
func first(c *cuda.Context, st **cuda.Stream) (err error) {
	if *st == nil {
		*st, err = c.NewStream(cuda.StreamOptions{Priority: -100})
	}
	return err
}

// needs is what a pipe has to have for a call.
type needs struct {
	of, master   *cuda.Context
	searches     int // streams
	copies, host bool
	fetches      bool // winners stay where they are until the master has them
	finalize     bool
	fetch        bool // by the master
}

// prepare makes what is needed and does not exist yet.
func (p *pipe) prepare(n needs) error {
	for len(p.search) < n.searches {
		st, err := n.of.NewStream(cuda.StreamOptions{})
		if err != nil {
			return err
		}
		p.search = append(p.search, st)
	}
	if n.finalize {
		if err := first(n.of, &p.finalize); err != nil {
			return err
		}
		if err := one(n.of, &p.finalized); err != nil {
			return err
		}
	}
	if n.fetch {
		if err := stream(n.of, &p.fetch); err != nil {
			return err
		}
	}
	if err := grow(n.of, &p.computed, ringLength); err != nil {
		return err
	}
	if err := one(n.of, &p.exit); err != nil || !n.copies {
		return err
	}
	if n.fetches {
		if err := grow(n.master, &p.fetched, ringLength); err != nil {
			return err
		}
	}
	err := firstError([]error{
		stream(n.of, &p.in), stream(n.of, &p.out),
		grow(n.of, &p.copied, ringLength), grow(n.of, &p.sent, ringLength),
	})
	if err != nil || !n.host {
		return err
	}
	if p.host == nil {
		p.host = &hostPipe{}
	}
	return p.host.prepare(n.master, ringLength)
}

// streams are all on the device that a call may have used, but for the caller's.
func (p *pipe) streams(r *replica) []*cuda.Stream {
	out := slices.Clone(p.search)
	if r.position > 0 {
		out = append(out, r.stream)
	}
	for _, st := range []*cuda.Stream{p.in, p.out, p.finalize, p.fetch} {
		if st != nil {
			out = append(out, st)
		}
	}
	return out
}

func (p *pipe) close() error {
	var errs []error
	if p.host != nil { // its memory must not be freed under a copy
		for _, st := range []*cuda.Stream{p.in, p.out} {
			errs = append(errs, st.Synchronize(context.Background()))
		}
		errs = append(errs, p.host.close())
	}
	for _, events := range [][]*cuda.Event{p.computed, p.copied, p.sent, p.fetched, {p.exit, p.finalized}} {
		for _, e := range events {
			errs = append(errs, e.Close())
		}
	}
	for _, st := range append(p.search, p.in, p.out, p.finalize, p.fetch) {
		errs = append(errs, st.Close())
	}
	return firstError(errs)
}

// lane is one device during one call.
type lane struct {
	r       *replica
	turns   []*cuda.Stream    // that take its chunks in turn; nil: there is one chunk
	retire  []int             // the numbers of retirement of its chunks
	memory  cuda.Slice[uint8] // of all slots
	slots   []slot
	counts  cuda.Slice[uint32] // counters of its searches
	entered bool               // something was enqueued
}

// countedChunks is how many chunks of a device at most have counters that are cleared together.
// Searches of later ones clear their own: however many there are, a call holds little memory.
const countedChunks = 8

// counterBytes is the memory for the counters of a device with so many chunks.
func counterBytes(chunks int64) int64 { return min(chunks, countedChunks) * scene.SearchCounters * 4 }

// count leases counters for the searches of chunks, and clears them on a stream that these come
// behind.
func (l *lane) count(st *cuda.Stream) (err error) {
	if l.counts, err = cuda.PoolAlloc[uint32](l.r.ctx.Pool(), st, int(counterBytes(int64(len(l.retire)))/4)); err != nil {
		return err
	}
	return cuda.Fill32(st, l.counts, 0)
}

// counters are those of a chunk, if there are any.
func (l *lane) counters(c chunked.Chunk) (cuda.Slice[uint32], error) {
	end := (c.Seq + 1) * scene.SearchCounters
	if end > l.counts.Len() {
		return cuda.Slice[uint32]{}, nil
	}
	return l.counts.Sub(end-scene.SearchCounters, end)
}

// stream is where a chunk is searched.
func (l *lane) stream(c chunked.Chunk) *cuda.Stream {
	if l.turns == nil {
		return l.r.stream
	}
	return l.turns[c.Seq%len(l.turns)]
}

// abreast is of how many equal parts of the device a chunk's search gets one. A search by
// itself leaves most of the device idle while it ends, and its blocks keep those of the next
// out until the last of their rays has ended. So as many searches run at the same time as
// there are slots, and not all of them end at the same time: the first has a larger part, and
// so has the last, behind which nothing follows. Of four, two are between, beside the first.
// Rows that are copied to a remote arrive one chunk after the other, and are not to wait on a
// part of a device that is idle otherwise.
func (l *lane) abreast(t chunked.Transport, c chunked.Chunk) int64 {
	switch n := len(l.retire); {
	case n == 1 || c.Position > 0 && t != chunked.Direct:
		return 1
	case c.Seq == 0 || c.Seq == n-1:
		return 2
	case n == 4:
		return 4
	}
	return searchStreams
}

// slot is a place for the inputs and winners of a chunk on a remote.
type slot struct{ in, out []scene.RowColumn }

// lease allocates the slots of a remote for chunks of so many rows, and room for the inputs
// that all rows share.
func (l *lane) lease(st *cuda.Stream, in, out []scene.RowColumn, rows, slots int64) (err error) {
	each := slotBytes(in, rows) + slotBytes(out, rows)
	if l.memory, err = cuda.PoolAlloc[uint8](l.r.ctx.Pool(), st, int(each*slots+alignedWhole(in))); err != nil {
		return err
	}
	l.slots = make([]slot, slots)
	shared := each * slots
	wholes, err := slotWholes(l.memory, &shared, in)
	if err != nil {
		return err
	}
	for i := range l.slots {
		at := int64(i) * each
		if l.slots[i].in, err = slotColumns(l.memory, &at, in, rows); err != nil {
			return err
		}
		for k, c := range wholes {
			if c.Whole() {
				l.slots[i].in[k] = c
			}
		}
		if l.slots[i].out, err = slotColumns(l.memory, &at, out, rows); err != nil {
			return err
		}
	}
	return nil
}

// slotBytes is the memory for so many rows of inputs that are present, or of outputs.
func slotBytes(columns []scene.RowColumn, rows int64) (n int64) {
	for _, c := range columns {
		n += aligned(rows * int64(c.Width))
	}
	return n
}

// alignedWhole is the memory for the columns that all rows share.
func alignedWhole(columns []scene.RowColumn) (n int64) {
	for _, c := range columns {
		if c.Whole() {
			n += aligned(int64(c.Data.Len()))
		}
	}
	return n
}

// wholeBytes is the bytes of those columns.
func wholeBytes(columns []scene.RowColumn) (n int64) {
	for _, c := range columns {
		if c.Whole() {
			n += int64(c.Data.Len())
		}
	}
	return n
}

// slotWholes cuts the columns that all rows share out of memory, from *at on.
func slotWholes(memory cuda.Slice[uint8], at *int64, columns []scene.RowColumn) ([]scene.RowColumn, error) {
	out := make([]scene.RowColumn, len(columns))
	for i, c := range columns {
		if !c.Whole() {
			continue
		}
		n := int64(c.Data.Len())
		var err error
		if out[i].Data, err = memory.Sub(int(*at), int(*at+n)); err != nil {
			return nil, err
		}
		*at += aligned(n)
	}
	return out, nil
}

func aligned(n int64) int64 { return (n + slotAlign - 1) / slotAlign * slotAlign }

// slotColumns cuts columns like those of the call out of memory, from *at on.
func slotColumns(memory cuda.Slice[uint8], at *int64, columns []scene.RowColumn, rows int64) ([]scene.RowColumn, error) {
	out := make([]scene.RowColumn, len(columns))
	for i, c := range columns {
		out[i].Width = c.Width
		n := rows * int64(c.Width)
		if n == 0 {
			continue
		}
		var err error
		if out[i].Data, err = memory.Sub(int(*at), int(*at+n)); err != nil {
			return nil, err
		}
		*at += aligned(n)
	}
	return out, nil
}
