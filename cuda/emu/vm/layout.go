package vm

import "slices"

// basicBlock is a run of instructions that control enters at its first and leaves at its last.
type basicBlock struct {
	first, last int // instructions [first, last) of the body as compiled
	succ        []int
}

// layout orders blocks so that forward edges go to higher positions, every loop is contiguous with
// its header first, and block 0 stays first. For the header of a loop, end holds the number of
// the position after the loop in the order, else 0.
//
// A loop is a strongly connected component; inner loops are those that remain when the edges to the
// header are taken away. Work is bounded by the depth of loops, which the limit caps: beyond it
// blocks stay in the order of the text, which is correct too, only slower to reconverge.
type layout struct {
	blocks []basicBlock
	order  []int
	end    map[int]int // block -> position in order after its loop
	cut    []bool      // headers whose incoming edges no longer count
	part   []int       // subgraph a block belongs to
	parts  int
	preds  [][]int
}

const maxLoopDepth = 200

func layoutBlocks(blocks []basicBlock) *layout {
	l := &layout{blocks: blocks, end: map[int]int{}, cut: make([]bool, len(blocks)), part: make([]int, len(blocks))}
	all := make([]int, len(blocks))
	for i := range all {
		all[i] = i
	}
	l.preds = make([][]int, len(blocks))
	for b := range blocks {
		for _, s := range blocks[b].succ {
			l.preds[s] = append(l.preds[s], b)
		}
	}
	l.arrange(all, 0)
	return l
}

func (l *layout) arrange(nodes []int, depth int) {
	if depth > maxLoopDepth {
		l.order = append(l.order, nodes...)
		return
	}
	for _, scc := range l.components(nodes) {
		if len(scc) == 1 && !slices.Contains(l.blocks[scc[0]].succ, scc[0]) {
			l.order = append(l.order, scc[0])
			continue
		}
		h := l.header(scc)
		start := len(l.order)
		l.order = append(l.order, h)
		l.cut[h] = true
		rest := scc[:0:0]
		for _, b := range scc {
			if b != h {
				rest = append(rest, b)
			}
		}
		l.arrange(rest, depth+1)
		l.end[h] = start + len(scc)
	}
}

// header picks where a loop is entered: the block with an edge from outside, the first in the text
// if there are several or none.
func (l *layout) header(scc []int) int {
	in := map[int]bool{}
	for _, b := range scc {
		in[b] = true
	}
	best := -1
	for _, b := range scc {
		for _, p := range l.preds[b] {
			if !in[p] && (best < 0 || b < best) {
				best = b
			}
		}
	}
	if best < 0 || in[0] {
		best = slices.Min(scc)
	}
	return best
}

// components returns the strongly connected components of the subgraph in topological order
// (Tarjan), without edges to cut headers.
func (l *layout) components(nodes []int) [][]int {
	l.parts++
	part := l.parts
	for _, n := range nodes {
		l.part[n] = part
	}
	index, low := map[int]int{}, map[int]int{}
	onStack := map[int]bool{}
	var stack []int
	var out [][]int
	type visit struct{ node, next int }
	for k := len(nodes) - 1; k >= 0; k-- { // reversed twice: ties stay in the order of the text
		if _, seen := index[nodes[k]]; seen {
			continue
		}
		calls := []visit{{nodes[k], 0}}
		for len(calls) > 0 {
			v := &calls[len(calls)-1]
			if v.next == 0 {
				index[v.node], low[v.node] = len(index), len(index)
				stack = append(stack, v.node)
				onStack[v.node] = true
			}
			succ := l.blocks[v.node].succ
			if v.next < len(succ) {
				s := succ[len(succ)-1-v.next]
				v.next++
				if l.part[s] != part || l.cut[s] {
					continue
				}
				if _, seen := index[s]; !seen {
					calls = append(calls, visit{s, 0})
				} else if onStack[s] {
					low[v.node] = min(low[v.node], index[s])
				}
				continue
			}
			n := v.node
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				p := calls[len(calls)-1].node
				low[p] = min(low[p], low[n])
			}
			if low[n] == index[n] {
				var scc []int
				for {
					top := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					onStack[top] = false
					scc = append(scc, top)
					if top == n {
						break
					}
				}
				slices.Sort(scc)
				out = append(out, scc)
			}
		}
	}
	slices.Reverse(out)
	return out
}
