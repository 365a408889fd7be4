package scene

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Blocks of 4000 lanes: of some cells, of one, or of a part of one where cells are few and
// have many states.
func TestBlocksOfCoherentCells(t *testing.T) {
	for _, c := range []struct {
		states, cells, group, shares, slots int64
		first                               int64 // cell of the call
	}{
		{states: 1, cells: 1000, group: 21, shares: 1},
		{states: 1000, cells: 1000, group: 4, shares: 1},
		{states: 4095, cells: 10, group: 1, shares: 1},
		{states: 4096, cells: 10, group: 1, shares: 2, slots: 10},
		{states: 9000, cells: 4096, group: 1, shares: 3, slots: 4096},
		{states: 9000, cells: 4097, group: 1, shares: 1},
		{states: 1 << 30, cells: 2, group: 1, shares: 1 << 16, slots: 2},
		{first: 7, states: 4096, cells: 10, group: 1, shares: 2, slots: 10},
		{first: 1, states: 9000, cells: 4096, group: 1, shares: 3, slots: 4096},
		{first: 2, states: 9000, cells: 4097, group: 1, shares: 1},
	} {
		// The call begins and ends within a cell.
		q := coherentQuery{states: c.states, begin: c.first*c.states + c.states/2, end: c.states*(c.first+c.cells) - c.states/3, grid: Grid{Res0: 1 << 12, Res1: 2}}
		group, shares := q.blocks(4000)
		require.Equal(t, [2]int64{c.group, c.shares}, [2]int64{group, shares}, "%+v", c)
		require.Equal(t, 36*c.slots, q.accumulator().sums64, "%+v", c)
	}
	// Blocks share cells although they could take more.
	q := coherentQuery{states: 4096, end: 4096}
	group, shares := q.blocks(8192)
	require.Equal(t, [2]int64{1, 2}, [2]int64{group, shares})
}
