package chunked_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

// randomInput makes calls of every class, most of which have a plan: sizes of
// chunks and budgets are chosen beside the number of rows, so that all kinds
// and refusals occur and lists of chunks stay short.
func randomInput(rng *rand.Rand) chunked.Input {
	n := 1 + rng.IntN(8)
	in := chunked.Input{
		Devices: ordinals(n), Rows: rng.Int64N(1 << uint(1+rng.IntN(40))), Hook: rng.IntN(4) == 0, Tape: rng.IntN(4) == 0,
		Transport: chunked.Direct + chunked.Transport(rng.IntN(3)),
	}
	rng.Shuffle(n, func(i, j int) { in.Devices[i], in.Devices[j] = in.Devices[j], in.Devices[i] })
	if rng.IntN(4) == 0 {
		in.Rows = rng.Int64N(100)
	}
	switch rng.IntN(8) {
	case 0:
		in.Op = direct(rng.Int64N(1000), rng.Int64N(1000))
		in.Op.Scratch, in.Op.Grid.Copies, in.Op.Grid.Copy, in.Hook = rng.Int64N(2), rng.Int64N(4), rng.Int64N(2000), false
		if in.Op.Scratch == 0 {
			in.Op.TapeBits, in.Op.Grid.Cut, in.Op.Grid.Cuts = 0, rng.Int64N(300), rng.Int64N(10)
		}
	case 1:
		in.Op = reflections(rng.Int64N(1000))
		in.Op.Scratch, in.Op.Grid.Events, in.Hook = rng.Int64N(2), 80*rng.Int64N(100), false
	case 2:
		in.Op = paths(1 + rng.Int64N(20))
		in.Rows -= in.Rows % in.Op.Block
	default:
		in.Op = perRay(12+rng.Int64N(200), 1+rng.Int64N(64), 1+rng.Int64N(300))
		if rng.IntN(4) == 0 {
			in.Op.Scratch, in.Op.TapeBits = rng.Int64N(40), 8*rng.Int64N(40)
		}
	}
	if in.Op.Class == chunked.GridReduce && rng.IntN(2) == 0 {
		in.Op.MinLanes = rng.Int64N(1 << 20)
	}
	if rng.IntN(4) == 0 {
		in.Begin = rng.Int64N(1 << 40)
	}
	if rng.IntN(3) > 0 {
		in.Options.Weights = randomWeights(rng, n)
	}
	in.Options.MinRaysPerDevice = []int64{0, 1, 1, 1 + rng.Int64N(1<<20)}[rng.IntN(4)]
	in.Options.MinLanesPerDevice = []int64{0, 1, 1, 1 + rng.Int64N(1<<20)}[rng.IntN(4)]
	in.Options.PipelineChunks = []int{0, 2, 3, 2 + rng.IntN(9)}[rng.IntN(4)]
	in.Options.NoPipeline = rng.IntN(8) == 0
	if rng.IntN(4) == 0 {
		in.Options.ChunkRays = max(1, in.Rows/(1+rng.Int64N(10))+rng.Int64N(3)-1)
	}
	if rng.IntN(4) == 0 {
		in.Options.MemoryBudget = budgetBeside(rng, in)
	}
	return in
}

// budgetBeside allows for the result and about as many rows as there are, or a
// fraction of them.
func budgetBeside(rng *rand.Rand, in chunked.Input) int64 {
	op := in.Op
	held := int64(0)
	if !in.Hook {
		held = in.Rows * (op.Record + op.TapeBits/8)
	}
	held += 2*op.Grid.Accumulator + op.Grid.Copy*max(op.Grid.Copies-1, 0) + op.Grid.ReadOut + op.Grid.Events
	row := 3*(op.In+op.Wire+op.Record+op.Scratch) + op.TapeBits/8
	return max(1, held+row*(in.Rows/(1+rng.Int64N(10)))+rng.Int64N(3*row+2)-row)
}

// narrow is the nearest number that an error can hold.
func narrow(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return math.MaxInt64
}

// sized reports whether an error is about memory.
func sized(err error) bool {
	var b *chunked.BudgetError
	var c *chunked.ChunkError
	var t *chunked.TapeError
	return errors.As(err, &b) || errors.As(err, &c) || errors.As(err, &t)
}

// typed reports whether an error is one of the planner's.
func typed(err error) bool {
	var o *chunked.OptionError
	var u *chunked.UnsupportedError
	return errors.As(err, &o) || errors.As(err, &u) || sized(err)
}

// refusal checks that what has been refused for its size had to be, by the
// model of memory, and that the numbers of the error are those of the model.
func refusal(in chunked.Input, err error) error {
	weights := in.Options.Weights
	if weights == nil {
		weights = ones(len(in.Devices))
	}
	_, shards := dispatch(in, weights)
	size := min(in.Rows, chunked.MaxLaunchRows)
	if in.Options.ChunkRays > 0 {
		size = min(size, in.Options.ChunkRays)
	}
	budget := big.NewInt(in.Options.MemoryBudget)
	above := func(rows int64) (devices []int) { // that lack memory for chunks of so many rows
		for k := range shards {
			if (k == 0 || shards[k].Len() > 0) && model(in, shards, k).bytes(rows).Cmp(budget) > 0 {
				devices = append(devices, k)
			}
		}
		return devices
	}
	most, least := 0, new(big.Int)
	for k := range shards {
		if k == 0 || shards[k].Len() > 0 {
			if n := model(in, shards, k).bytes(min(1, in.Rows)); n.Cmp(least) > 0 {
				most, least = k, n
			}
		}
	}
	if least.Cmp(budget) > 0 || !least.IsInt64() {
		var e *chunked.BudgetError
		if !errors.As(err, &e) || e.Position != most || e.Device != in.Devices[most] || e.Minimum != narrow(least) {
			return fmt.Errorf("device %d needs most, %d B: %w", most, least, err)
		}
		return nil
	}
	if lack := above(size); len(lack) > 0 && in.Options.ChunkRays > 0 {
		var e *chunked.ChunkError
		if !errors.As(err, &e) || e.Device != in.Devices[e.Position] || e.Bytes != narrow(model(in, shards, e.Position).bytes(size)) ||
			len(above(e.Largest)) > 0 || above(e.Largest + 1)[0] != e.Position {
			return fmt.Errorf("chunks of %d rows are too large for %v: %w", size, lack, err)
		}
		return nil
	}
	// Chunks of this size and more are few enough.
	enough := in.Rows/(chunked.MaxChunks-int64(len(shards))) + 1
	if o := new(chunked.OptionError); errors.As(err, &o) && in.Options.MemoryBudget > 0 && in.Options.ChunkRays == 0 {
		if len(above(enough)) > 0 {
			return nil
		}
	}
	var e *chunked.TapeError
	if !errors.As(err, &e) || !in.Tape || in.Hook || in.Options.MemoryBudget == 0 || e.Chunks < 2 {
		return fmt.Errorf("the input is valid: %w", err)
	}
	return nil
}

func TestChunkedRandomPlans(t *testing.T) {
	rounds := 1_000_000
	if testing.Short() {
		rounds = 20_000
	}
	rng := rand.New(rand.NewPCG(13, 19))
	kinds, refused := map[chunked.Kind]int{}, map[string]int{}
	for i := range rounds {
		in := randomInput(rng)
		p, err := chunked.BuildPlan(in)
		if err != nil {
			refused[fmt.Sprintf("%T", err)]++
			if err := refusal(in, err); err != nil {
				t.Fatalf("%v\ninput %+v", err, in)
			}
			continue
		}
		kinds[p.Kind]++
		if err := violation(in, p); err != nil {
			t.Fatalf("%v\ninput %+v\n%v", err, in, p)
		}
		if i%4 == 0 {
			if err := relations(rng, in, p); err != nil {
				t.Fatalf("%v\ninput %+v", err, in)
			}
		}
		if i%1024 == 0 {
			require.NoError(t, sameJSON(in, p))
		}
	}
	t.Log(kinds, refused)
	for _, k := range []chunked.Kind{"single", "master", "direct", "pipelined", "sharded", "chunked", "lane-sharded", "lane-chunked"} {
		require.Greater(t, kinds[k], rounds/500, "%s: too few plans to say anything", k)
	}
	for _, e := range []string{"*chunked.BudgetError", "*chunked.ChunkError", "*chunked.TapeError"} {
		require.Greater(t, refused[e], rounds/1000, "%s: too few refusals to say anything", e)
	}
}

// relations are properties of two plans: a larger budget does not make chunks
// smaller, and a power of two as a factor of all weights changes nothing.
func relations(rng *rand.Rand, in chunked.Input, p chunked.Plan) error {
	if more := in; in.Options.MemoryBudget > 0 {
		more.Options.MemoryBudget += 1 + rng.Int64N(in.Options.MemoryBudget)
		q, err := chunked.BuildPlan(more)
		if err != nil {
			return fmt.Errorf("a larger budget is refused: %w", err)
		}
		for k, rows := range p.ChunkRows {
			if q.ChunkRows[k] < rows {
				return fmt.Errorf("budget %d: %d rows, budget %d: %d", in.Options.MemoryBudget, rows, more.Options.MemoryBudget, q.ChunkRows[k])
			}
		}
	}
	scaled := in
	scaled.Weights = slices.Clone(p.Weights)
	for i := range scaled.Weights {
		scaled.Weights[i] = math.Ldexp(scaled.Weights[i], 10)
	}
	q, err := chunked.BuildPlan(scaled)
	if err != nil {
		return err
	}
	if q.Kind != p.Kind || !slices.Equal(q.Shards, p.Shards) || !slices.Equal(q.Chunks, p.Chunks) || q.Floor != p.Floor {
		return fmt.Errorf("plans of scaled weights differ:\n%v\n%v", p, q)
	}
	return nil
}

// sameJSON compares the JSON of two plans of one input, and what is read from it.
func sameJSON(in chunked.Input, p chunked.Plan) error {
	q, err := chunked.BuildPlan(in)
	if err != nil {
		return err
	}
	a, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if b, err := json.Marshal(q); err != nil || !bytes.Equal(a, b) {
		return fmt.Errorf("plans of one input differ: %w\n%s\n%s", err, a, b)
	}
	var back chunked.Plan
	if err := json.Unmarshal(a, &back); err != nil {
		return err
	}
	if !reflect.DeepEqual(p, back) {
		return fmt.Errorf("the plan changes through JSON:\n%+v\n%+v", p, back)
	}
	return nil
}
