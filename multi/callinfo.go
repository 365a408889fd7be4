package multi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/scene"
)

// CallInfo says how a call ran. Pass it to one call, by Info.
type CallInfo struct {
	// Timing, set before the call, makes Times work. It costs up to eight events per
	// chunk.
	Timing bool

	Plan   chunked.Plan  // with kind, transport, weights and the reason
	Submit time.Duration // of host time between planning and the end of the call

	// Bytes per row, measured: of the result, and over the link both ways.
	MeasuredRowBytes, MeasuredWireBytes int64
	// Bytes over links, which follow from the plan and not from what the call finds: of inputs
	// what remotes read, those that all rows share once per remote with rows; back the winners
	// of remote rows, or of accumulations one accumulator for each remote with lanes. Less moves
	// where the master has filled the rows before (TraceDfrPaths with the Direct transport: rows
	// without a path send one byte) or reads sums itself (AccumulateReflections with the Direct
	// transport: of cells without contributions four bytes), and another number where remotes add
	// to sums on the master (AccumDfrDirect of few cells): some words for every warp.
	FromMaster, ToMaster int64
	// HighWater is the bytes that the call held on each device at the same time, by
	// position. Columns start at multiples of 256 bytes, so that it exceeds the
	// plan's estimate by less than that per column and chunk, and by counters: as
	// much for each of up to eight chunks.
	HighWater []int64

	rec *recorder
}

// String is the plan, and a line each for the time on the host, the bytes and the memory.
func (i *CallInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  submitted in %s\n", i.Plan, ms(float64(i.Submit)))
	fmt.Fprintf(&b, "  a row: %d B of the result, %d B over the link; %d B from the master, %d B to it\n",
		i.MeasuredRowBytes, i.MeasuredWireBytes, i.FromMaster, i.ToMaster)
	fmt.Fprintf(&b, "  held: %v B, by device\n", i.HighWater)
	return b.String()
}

// Info fills info when the call ends, also when it fails.
func Info(info *CallInfo) scene.CallOption { return scene.Carry(info) }

// ChunkTimes is where the time of a chunk went on the devices: in copies of inputs to its device
// (Scatter), the search for winners or the sums of its lanes (Traverse), copies of these to the
// master (Gather), and the columns that the master makes of winners (Finalize). Copies are zero
// where nothing is copied. Stages of different chunks overlap. A call that the master answers
// alone in one go (chunked.KindSingle, chunked.KindMaster) is timed as a whole: Traverse of
// its first chunk is all of it.
type ChunkTimes struct {
	Chunk                               chunked.Chunk
	Scatter, Traverse, Gather, Finalize time.Duration
}

// Times waits until the call has run and returns the times of its chunks, in the order of
// the plan. It needs Timing, and works once: it releases the events, as closing the scene
// does.
func (i *CallInfo) Times(ctx context.Context) ([]ChunkTimes, error) {
	if i.rec == nil {
		return nil, badArg("CallInfo.Times", "Timing", "was not set before the call; times are told once")
	}
	return i.rec.times(ctx)
}

// phase is a stage of a chunk.
type phase int

const (
	scatter phase = iota
	traverse
	gather
	finalize
	phases
)

// recorder holds the timing events of a call. A nil recorder records nothing.
type recorder struct {
	s      *Scene
	info   *CallInfo
	chunks []chunked.Chunk
	spans  map[spanKey][2]*cuda.Event
	err    error // the first failure; it does not concern the call
}

type spanKey struct {
	retire int
	phase  phase
}

// begin marks the start of a stage on st.
func (r *recorder) begin(c chunked.Chunk, p phase, st *cuda.Stream) mark {
	if r == nil {
		return mark{}
	}
	r.note(c, p, 0, st)
	return mark{r, c, p, st}
}

// whole marks the start of a call that the plain scene answers, as the traversal of its
// first chunk.
func (r *recorder) whole(st *cuda.Stream) mark {
	if r == nil || len(r.chunks) == 0 {
		return mark{}
	}
	return r.begin(r.chunks[0], traverse, st)
}

// mark is a stage that has begun.
type mark struct {
	r  *recorder
	c  chunked.Chunk
	p  phase
	st *cuda.Stream
}

// end marks the end of the stage, and passes the outcome of it on.
func (m mark) end(err error) error {
	if m.r != nil && err == nil {
		m.r.note(m.c, m.p, 1, m.st)
	}
	return err
}

func (r *recorder) note(c chunked.Chunk, p phase, end int, st *cuda.Stream) {
	e, err := st.Context().NewEvent(cuda.EventOptions{Timing: true})
	if err != nil {
		r.err = attach(r.err, err)
		return
	}
	key := spanKey{c.Retire, p}
	span := r.spans[key]
	span[end] = e
	r.spans[key] = span
	r.err = attach(r.err, st.Record(e))
}

func (r *recorder) times(ctx context.Context) ([]ChunkTimes, error) {
	out := make([]ChunkTimes, len(r.chunks))
	err := r.err
	for i, c := range r.chunks {
		out[i].Chunk = c
		for p, d := range [phases]*time.Duration{&out[i].Scatter, &out[i].Traverse, &out[i].Gather, &out[i].Finalize} {
			span := r.spans[spanKey{c.Retire, phase(p)}]
			if err != nil || span[0] == nil || span[1] == nil {
				continue
			}
			if err = span[1].Synchronize(ctx); err == nil {
				*d, err = span[1].Since(span[0])
			}
		}
	}
	if err = attach(err, r.close()); err != nil {
		return nil, err
	}
	return out, nil
}

// close releases the events.
func (r *recorder) close() error {
	var errs []error
	for _, span := range r.spans {
		errs = append(errs, span[0].Close(), span[1].Close())
	}
	r.spans, r.info.rec = nil, nil
	r.s.forgetTimes(r)
	return firstError(errs)
}

// forgetTimes drops a recorder whose events are released.
func (s *Scene) forgetTimes(r *recorder) {
	s.timed.Lock()
	defer s.timed.Unlock()
	delete(s.timed.open, r)
}

// openTimes are the recorders whose events nobody has read.
func (s *Scene) openTimes() []*recorder {
	s.timed.Lock()
	defer s.timed.Unlock()
	return slices.Collect(maps.Keys(s.timed.open))
}

// record prepares to fill info for a call, with a copy of the plan, which serves other calls, too.
func (s *Scene) record(info *CallInfo, plan *chunked.Plan) *recorder {
	if info == nil {
		return nil
	}
	*info = CallInfo{Timing: info.Timing, Plan: plan.Clone()}
	if !info.Timing {
		return nil
	}
	r := &recorder{s: s, info: info, chunks: plan.Chunks, spans: map[spanKey][2]*cuda.Event{}}
	info.rec = r
	s.timed.Lock()
	defer s.timed.Unlock()
	if s.timed.open == nil {
		s.timed.open = map[*recorder]struct{}{}
	}
	s.timed.open[r] = struct{}{}
	return r
}

// fill measures a call that has been submitted.
func (i *CallInfo) fill(call *scene.Call, plan *chunked.Plan, streamed bool, took time.Duration) {
	i.Submit = took
	all, out := call.Columns()
	in, width := given(all), widths(out)
	i.MeasuredRowBytes = call.RowBytes()
	i.MeasuredWireBytes = rowBytes(in) + width
	i.HighWater = make([]int64, len(plan.Devices))
	shared := wholeBytes(in)
	counts, largest := make([]int64, len(plan.Devices)), int64(0)
	for _, c := range plan.Chunks {
		counts[c.Position]++
		largest = max(largest, c.Len())
		if c.Position > 0 {
			if c.Seq == 0 {
				i.FromMaster += shared
			}
			i.FromMaster += c.Len() * rowBytes(in)
			i.ToMaster += c.Len() * width
		}
	}
	i.HighWater[0] = call.PartBytes(call.Rows)
	if streamed {
		i.HighWater[0] = aligned(call.PartBytes(largest)) * int64(min(plan.RecordSlots, len(plan.Chunks)))
	}
	if !plan.Kind.Whole() && counted(plan, streamed, 0, counts[0]) {
		i.HighWater[0] += counterBytes(counts[0])
	}
	if fetched(plan, streamed) {
		in = nil // are read in place
	} else if plan.Transport == chunked.Direct || plan.Kind.Whole() {
		return
	}
	for k := 1; k < len(counts); k++ {
		rows := min(plan.ChunkRows[k], plan.Shards[k].Len())
		i.HighWater[k] = min(counts[k], chunked.RemoteSlots) * (slotBytes(in, rows) + slotBytes(out, rows))
		if counts[k] > 0 {
			i.HighWater[k] += alignedWhole(in)
		}
		if counted(plan, streamed, k, counts[k]) {
			i.HighWater[k] += counterBytes(counts[k])
		}
	}
}
