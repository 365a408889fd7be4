package scene

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// SurfaceGroups says which faces are parts of one surface, on the host.
type SurfaceGroups struct {
	// ID is the group of each face, from 0 on; -1, and faces beyond the column, are in no
	// group. PlanarSurfaces returns such a column.
	ID []int32
	// Members are the faces of all groups, in the order in which they are searched for the
	// one that holds a point: those of group g are Members[Offsets[g]:Offsets[g+1]]. They
	// say what ID says. Without both, faces are searched in ascending order.
	Offsets, Members []int32
}

// SurfaceGroupTable is SurfaceGroups on the device: what the operations on equivalent
// paths take. Make it with Scene.UploadSurfaceGroups; close it when no call needs it any
// more.
type SurfaceGroupTable struct {
	deviceTable
	groups, ids, faces int
}

// Count is the number of groups, empty ones among them.
func (t *SurfaceGroupTable) Count() int { return t.groups }

// Close returns the memory of all copies. It waits for all work of their devices, so that
// no query still reads them. Close is idempotent, and of nil it does nothing.
func (t *SurfaceGroupTable) Close() error {
	if t == nil {
		return nil
	}
	return t.close()
}

// UploadSurfaceGroups brings the groups of the scene's faces to its device. It copies
// them: later changes of the columns do not matter. The table fits the scene until meshes
// are added.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError for faces and groups that do not exist
// and for members that do not agree with ID; the error of ctx, and those of cuda. Cost: it
// waits for the upload of 4 bytes per entry of the three columns.
func (s *Scene) UploadSurfaceGroups(ctx context.Context, g SurfaceGroups) (*SurfaceGroupTable, error) {
	const op = "UploadSurfaceGroups"
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	faces := s.tables.faceCount
	if len(g.ID) > faces {
		return nil, badArg(op, "ID", "has %d values, want at most %d, one for each face", len(g.ID), faces)
	}
	groups, err := g.count(op)
	if err != nil {
		return nil, err
	}
	if g.Offsets == nil && g.Members == nil {
		g.list(groups)
	} else if err := g.checkMembers(op, groups); err != nil {
		return nil, err
	}
	t := &SurfaceGroupTable{groups: groups, ids: len(g.ID), faces: faces}
	if err := t.fill(ctx, s, "Groups", g.pack()); err != nil {
		return nil, err
	}
	return t, nil
}

// count is the number of groups.
func (g *SurfaceGroups) count(op string) (n int, err error) {
	if g.Offsets != nil {
		n = len(g.Offsets) - 1
	}
	for f, id := range g.ID {
		switch {
		case id < -1:
			return 0, badArg(op, fmt.Sprintf("ID[%d]", f), "is %d, want a group from 0 on, or -1", id)
		case id == math.MaxInt32:
			return 0, badArg(op, fmt.Sprintf("ID[%d]", f), "is %d, want less", id)
		case g.Offsets != nil && int(id) >= n:
			return 0, badArg(op, fmt.Sprintf("ID[%d]", f), "is %d, but Offsets has %d groups", id, n)
		case g.Offsets == nil:
			n = max(n, int(id)+1)
		}
	}
	return n, nil
}

// list makes the members of ID, in ascending order.
func (g *SurfaceGroups) list(groups int) {
	g.Offsets = make([]int32, groups+1)
	for _, id := range g.ID {
		if id >= 0 {
			g.Offsets[id+1]++
		}
	}
	for i := range groups {
		g.Offsets[i+1] += g.Offsets[i]
	}
	next := make([]int32, groups)
	copy(next, g.Offsets)
	g.Members = make([]int32, g.Offsets[groups])
	for f, id := range g.ID {
		if id >= 0 {
			g.Members[next[id]] = int32(f)
			next[id]++
		}
	}
}

// checkMembers requires the members to say what ID says.
func (g *SurfaceGroups) checkMembers(op string, groups int) error {
	if len(g.Offsets) == 0 || g.Offsets[0] != 0 || int(g.Offsets[groups]) != len(g.Members) {
		return badArg(op, "Offsets", "has %d values for %d members, want one more than there are groups, from 0 to the number of members", len(g.Offsets), len(g.Members))
	}
	for i := range groups {
		if g.Offsets[i] > g.Offsets[i+1] {
			return badArg(op, fmt.Sprintf("Offsets[%d]", i+1), "is %d after %d, want ascending offsets", g.Offsets[i+1], g.Offsets[i])
		}
	}
	listed := make([]bool, len(g.ID))
	for i := range groups {
		for at := g.Offsets[i]; at < g.Offsets[i+1]; at++ {
			f := g.Members[at]
			if f < 0 || int(f) >= len(g.ID) || int(g.ID[f]) != i {
				return badArg(op, fmt.Sprintf("Members[%d]", at), "is face %d in group %d, where ID does not have it", f, i)
			}
			if listed[f] {
				return badArg(op, fmt.Sprintf("Members[%d]", at), "is face %d, for the second time", f)
			}
			listed[f] = true
		}
	}
	for f, id := range g.ID {
		if id >= 0 && !listed[f] {
			return badArg(op, fmt.Sprintf("ID[%d]", f), "is group %d, whose members do not include the face", id)
		}
	}
	return nil
}

// pack is ID, Offsets and Members, one after the other.
func (g *SurfaceGroups) pack() []uint8 {
	out := make([]uint8, 0, 4*(len(g.ID)+len(g.Offsets)+len(g.Members)))
	for _, column := range [][]int32{g.ID, g.Offsets, g.Members} {
		for _, v := range column {
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		}
	}
	return out
}

// surfaceGroups is SurfaceGroups of epc.cuh; zero without groups.
type surfaceGroups struct {
	IDs     uint64
	Offsets uint64
	Members uint64
	Count   int32
}

// columns is the table, which may be nil, as kernels on the device of s read it. Nothing
// is enqueued.
func (t *SurfaceGroupTable) columns(op string, s *Scene) (surfaceGroups, error) {
	if t == nil {
		return surfaceGroups{}, nil
	}
	memory, err := t.on(op, s)
	if err != nil {
		return surfaceGroups{}, err
	}
	if have := s.tables.faceCount; have != t.faces {
		return surfaceGroups{}, badArg(op, "Groups", "is for %d faces, the scene has %d: upload it again", t.faces, have)
	}
	g := surfaceGroups{IDs: memory.Addr(), Count: int32(t.ids)}
	g.Offsets = g.IDs + 4*uint64(t.ids)
	g.Members = g.Offsets + 4*uint64(t.groups+1)
	return g, nil
}
