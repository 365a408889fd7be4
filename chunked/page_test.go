package chunked_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/raymux/raymux/chunked"
	"github.com/stretchr/testify/require"
)

var updatePage = flag.Bool("update", false, "write the plans of docs/plans.md")

const page = "../docs/plans.md"

// The plans of the page, by the names of their places.
func pagePlans() map[string]chunked.Input {
	call := func(op chunked.Op, rows int64, n int, transport chunked.Transport, set func(*chunked.Input)) chunked.Input {
		in := chunked.Input{Op: op, Rows: rows, Devices: ordinals(n), Transport: transport}
		if set != nil {
			set(&in)
		}
		return in
	}
	budget := func(bytes int64, hook bool) func(*chunked.Input) {
		return func(in *chunked.Input) { in.Options.MemoryBudget, in.Hook = bytes, hook }
	}
	return map[string]chunked.Input{
		"direct":   call(intersect(), 4194304, 2, chunked.Direct, nil),
		"master":   call(intersect(), 2097150, 2, chunked.Direct, nil),
		"weights":  call(intersect(), 8388608, 2, chunked.Copy, func(in *chunked.Input) { in.Options.Weights = []float64{1, .25} }),
		"eight":    call(intersect(), 8388608, 8, chunked.Host, nil),
		"streamed": call(intersect(), 4194304, 2, chunked.Direct, budget(64<<20, true)),
		"whole":    call(intersect(), 4194304, 2, chunked.Direct, budget(1<<30, false)),
		"refused":  call(intersect(), 4194304, 2, chunked.Direct, budget(300000000, false)),
		"toolarge": call(intersect(), 4194304, 2, chunked.Direct, func(in *chunked.Input) { budget(64<<20, true)(in); in.Options.ChunkRays = 1 << 20 }),
		"requested": call(chains(2), 33, 2, chunked.Copy, func(in *chunked.Input) {
			in.Options.ChunkRays = 7
		}),
		"lanes": call(direct(100, 209), 1<<21, 2, chunked.Direct, func(in *chunked.Input) { in.Op.MinLanes = 1 << 20 }),
	}
}

// The page shows what the planner says now. After a change that is meant,
//
//	go test ./chunked -run TestChunkedPage -update
//
// writes it anew.
func TestChunkedPage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	plans, shown := pagePlans(), map[string]bool{}
	place := regexp.MustCompile("(?s)<!-- plan: (\\w+) -->\n```\n.*?```\n")
	want := place.ReplaceAllFunc(text, func(old []byte) []byte {
		name := string(place.FindSubmatch(old)[1])
		in, ok := plans[name]
		require.True(t, ok, "there is no plan %q", name)
		shown[name] = true
		p, err := chunked.BuildPlan(in)
		said := p.String()
		if err != nil {
			said = err.Error() + "\n"
		} else {
			require.NoError(t, violation(in, p))
		}
		return fmt.Appendf(nil, "<!-- plan: %s -->\n```\n%s```\n", name, said)
	})
	require.Len(t, shown, len(plans), "plans without a place")
	if *updatePage {
		require.NoError(t, os.WriteFile(page, want, 0o644))
		return
	}
	require.Equal(t, string(want), string(text), "go test ./chunked -run TestChunkedPage -update")
}
