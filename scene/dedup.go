package scene

import (
	"context"
	"math"

	"github.com/raymux/raymux/cuda"
)

// Paths is a batch of n chains of reflections and what tells their paths apart. All
// columns are on the scene's device.
type Paths struct {
	// PrimIDs is the primitives of every chain, n*Bounces values, as in Chains; the
	// first negative one ends it.
	PrimIDs cuda.Slice[int32]
	Bounces int
	// SourceKey is n values that say which source shot the ray, or absent. Then the
	// bits of the ray's origin do, RayO, 3n values.
	SourceKey cuda.Slice[int32]
	RayO      cuda.Slice[float32]
	// Canonical maps primitives to one that stands for all of their surface, as
	// PlanarSurfaces does, or is absent. Negative entries, and primitives beyond the
	// table, stand for themselves.
	Canonical cuda.Slice[int32]
	// RowBase is the number of row 0 among the rows of all batches that will be merged.
	RowBase int64
}

// UniqueChains is the result of DedupReflections: one row per path, in the order of
// their first rows. Other columns of a path are those of its representative.
type UniqueChains struct {
	// Count is the number of paths u.
	Count int64
	// Bounces is the number of slots of PrimIDs.
	Bounces int
	// Spans are the rows that were grouped, in ascending order.
	Spans []RowSpan

	Representative cuda.Slice[int64] // smallest row of the group, with RowBase, [u]
	DiscoveryCount cuda.Slice[int64] // rows in the group, [u]
	BounceCount    cuda.Slice[int32] // [u]
	PrimIDs        cuda.Slice[int32] // of the representative, then -1, [u,Bounces]
	GroupOfRow     cuda.Slice[int32] // of every row of Spans; -1: no bounce
	// The source of each path, by which groups are merged: one of the two, as in Paths.
	SourceKey cuda.Slice[int32]   // [u]
	RayO      cuda.Slice[float32] // [u,3]

	keyed bool // sources are told apart by SourceKey
	block
}

// RowSpan is rows [Base, Base+Count).
type RowSpan struct{ Base, Count int64 }

// Close returns the memory to the pool, for work that follows on the stream of the call
// that filled it. Close is idempotent, and of nil it does nothing.
func (u *UniqueChains) Close() error {
	if u == nil {
		return nil
	}
	return u.close()
}

// maxPathRows is the most rows of one call of DedupReflections.
const maxPathRows = maxLaunchRows

// pathHashBits are the bits of the hash that rows are sorted by. The highest is kept for
// rows without a bounce. 63 bits instead of the 128 that would make a collision
// practically impossible: every row is compared with its neighbour anyway, and a
// collision only makes the call slower.
const pathHashBits = 1<<63 - 1

// DedupReflections groups rows that took the same path: the same source, the same number
// of bounces, and the same surfaces in the same order. Rows without a bounce belong to
// no group. Which rows are grouped is exact, and the result does not depend on the device.
//
// The work is enqueued on the scene's stream or the stream of OnStream. DedupReflections
// waits for it once, for the number of paths; the columns are complete in the order of
// that stream. Close the result to reuse its memory.
//
// Errors: ErrNotReady, *FailedError, *ArgumentError (also for more than 2^30 rows and for
// Into), *cuda.WrongDeviceError, the error of ctx, and errors of the device. Cost: a sort
// of n pairs of 12 bytes, and about ten passes over columns of 4 bytes; the first call
// loads the kernels.
func (s *Scene) DedupReflections(ctx context.Context, in Paths, opts ...CallOption) (out *UniqueChains, err error) {
	if err := s.shareReady(ctx); err != nil {
		return nil, err
	}
	defer s.turns.done(false)
	const op = "DedupReflections"
	n, err := s.checkPaths(op, in)
	if err != nil {
		return nil, err
	}
	st, err := s.waitingStream(op, n, opts)
	if err != nil {
		return nil, err
	}
	d := &dedup{s: s, st: st, in: in, n: n}
	defer func() {
		if failed := d.free(); failed != nil {
			out, err = nil, firstError(err, failed, out.Close())
		}
	}()
	if n == 0 {
		return d.allocate(0)
	}
	runs, collided, err := d.sort(ctx)
	if err != nil {
		return nil, err
	}
	if collided {
		s.log.Debug("paths with equal hashes are grouped on the host", "rows", n)
		return d.onHost(ctx)
	}
	if out, err = d.allocate(runs); err != nil {
		return nil, err
	}
	if err := d.write(out); err != nil {
		return nil, firstError(err, out.Close())
	}
	return out, nil
}

// waitingStream is the stream of a call that waits, and fills no result of the caller's.
func (s *Scene) waitingStream(op string, rows int64, opts []CallOption) (*cuda.Stream, error) {
	c, o, err := s.begin(op, rows, opts)
	if err != nil {
		return nil, err
	}
	if len(o.carried) > 0 || o.later {
		return nil, badArg(op, "opts", "has an option of a scheduler; DedupReflections runs on one device")
	}
	if o.into != nil {
		return nil, badArg(op, "Into", "is not supported: the size of the result is known only when it is complete")
	}
	return c.Stream, nil
}

func (s *Scene) checkPaths(op string, in Paths) (n int64, err error) {
	if in.Bounces < 1 || in.Bounces > MaxBounces {
		return 0, badArg(op, "Bounces", "is %d, want 1 to %d", in.Bounces, MaxBounces)
	}
	if in.PrimIDs.Len()%in.Bounces != 0 {
		return 0, badArg(op, "PrimIDs", "has %d values, want %d per row", in.PrimIDs.Len(), in.Bounces)
	}
	rows := in.PrimIDs.Len() / in.Bounces
	switch {
	case rows > maxPathRows:
		return 0, badArg(op, "PrimIDs", "has %d rows, want at most %d: group parts and merge them", rows, maxPathRows)
	case in.RowBase < 0:
		return 0, badArg(op, "RowBase", "is %d, want 0 or more", in.RowBase)
	case in.RowBase > math.MaxInt64-int64(rows):
		return 0, badArg(op, "RowBase", "is %d, want at most %d: rows are numbered in int64", in.RowBase, math.MaxInt64-int64(rows))
	case !in.SourceKey.IsNil() && in.SourceKey.Len() != rows:
		return 0, badArg(op, "SourceKey", "has %d values, want %d or none", in.SourceKey.Len(), rows)
	case in.SourceKey.IsNil() && in.RayO.Len() != 3*rows:
		return 0, badArg(op, "RayO", "has %d values, want %d for the %d rows of PrimIDs, because there is no SourceKey", in.RayO.Len(), 3*rows, rows)
	}
	return int64(rows), firstError(
		checkMemory(s, op, "PrimIDs", in.PrimIDs), checkMemory(s, op, "SourceKey", in.SourceKey),
		checkMemory(s, op, "RayO", in.RayO), checkMemory(s, op, "Canonical", in.Canonical))
}

// dedup is one call of DedupReflections.
type dedup struct {
	s  *Scene
	st *cuda.Stream
	in Paths
	n  int64

	kernels       *dedupKernels
	pairs         pairs
	heads, firsts scan
	counts        cuda.Slice[uint32] // of heads, of firsts, and 1 after a collision
	starts        cuda.Slice[uint32]
	groups        cuda.Slice[uint32]
}

// scan is values that are replaced by the sums before them.
type scan struct{ values, totals cuda.Slice[uint32] }

func (c scan) params() scanned { return scanned{c.values.Addr(), c.totals.Addr()} }

func (d *dedup) paths() pathColumns {
	p := pathColumns{
		PrimIDs: d.in.PrimIDs.Addr(), Keys: d.in.SourceKey.Addr(), Canonical: d.in.Canonical.Addr(),
		CanonicalCount: int64(d.in.Canonical.Len()), Bounces: int64(d.in.Bounces),
	}
	if d.in.SourceKey.IsNil() {
		p.Origins = d.in.RayO.Addr()
	}
	return p
}

// temporary allocates memory that free returns.
func temporary[T cuda.Scalar](d *dedup, dst *cuda.Slice[T], n int64) (err error) {
	*dst, err = cuda.PoolAlloc[T](d.s.ctx.Pool(), d.st, int(n))
	return err
}

func returned[T cuda.Scalar](d *dedup, v cuda.Slice[T]) error {
	if v.IsNil() {
		return nil
	}
	return cuda.PoolFree(d.s.ctx.Pool(), d.st, v)
}

func (d *dedup) free() error {
	return firstError(
		returned(d, d.pairs.keys), returned(d, d.pairs.otherKeys),
		returned(d, d.pairs.values), returned(d, d.pairs.otherValues), returned(d, d.pairs.counters),
		returned(d, d.heads.values), returned(d, d.heads.totals),
		returned(d, d.firsts.values), returned(d, d.firsts.totals),
		returned(d, d.counts), returned(d, d.starts), returned(d, d.groups))
}

// sort sorts the rows and waits for the number of runs, and whether rows of a run differ.
func (d *dedup) sort(ctx context.Context) (runs int64, collided bool, err error) {
	n, tiles := d.n, (d.n+scanTile-1)/scanTile
	if d.kernels, err = d.s.kernels.dedup.get(func() (*dedupKernels, error) { return loadDedupKernels(d.s.ctx) }); err != nil {
		return 0, false, err
	}
	err = firstError(
		temporary(d, &d.pairs.keys, n), temporary(d, &d.pairs.otherKeys, n),
		temporary(d, &d.pairs.values, n), temporary(d, &d.pairs.otherValues, n),
		temporary(d, &d.pairs.counters, int64(sortCounters(int(n)))),
		temporary(d, &d.heads.values, n), temporary(d, &d.heads.totals, tiles),
		temporary(d, &d.firsts.values, n), temporary(d, &d.firsts.totals, tiles),
		temporary(d, &d.counts, 3))
	if err != nil {
		return 0, false, err
	}
	if err := d.s.submit(d.st, func(sc cuda.Scope) error { return d.enqueueSort(sc, tiles) }); err != nil {
		return 0, false, err
	}
	counts, err := cuda.Download(ctx, d.st, d.counts)
	if err != nil {
		return 0, false, err
	}
	return int64(counts[0]), counts[2] != 0, nil
}

func (d *dedup) enqueueSort(sc cuda.Scope, tiles int64) error {
	k := d.kernels
	err := launchRows(sc, k.hashPaths, d.st, d.n, &hashPathsParams{
		Paths: d.paths(), Hashes: d.pairs.keys.Addr(), Rows: d.pairs.values.Addr(), Mask: d.s.pathHash, Count: d.n,
	})
	if err != nil {
		return err
	}
	if err := d.s.sortPairs(sc, d.st, &d.pairs, 64); err != nil {
		return err
	}
	if err := cuda.Fill32(d.st, d.counts, 0); err != nil {
		return err
	}
	at := d.counts.Addr()
	err = launchRows(sc, k.markRuns, d.st, d.n, &markRunsParams{
		Paths: d.paths(), Hashes: d.pairs.keys.Addr(), Rows: d.pairs.values.Addr(),
		Heads: d.heads.values.Addr(), Firsts: d.firsts.values.Addr(), Collisions: at + 8, Count: d.n,
	})
	if err != nil {
		return err
	}
	for i, c := range []scan{d.heads, d.firsts} {
		err := launchBlocks(sc, k.scanTiles, d.st, tiles, scanThreads, &scanTilesParams{
			Values: c.values.Addr(), Totals: c.totals.Addr(), Count: d.n,
		})
		if err != nil {
			return err
		}
		err = launchBlocks(sc, k.scanTotals, d.st, 1, scanThreads, &scanTotalsParams{
			Totals: c.totals.Addr(), Total: at + uint64(4*i), Tiles: tiles,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// allocate makes a result of so many groups.
func (d *dedup) allocate(groups int64) (*UniqueChains, error) {
	return d.s.newUnique(d.st, uniqueShape{
		groups: groups, bounces: d.in.Bounces, keyed: !d.in.SourceKey.IsNil(),
		spans: []RowSpan{{d.in.RowBase, d.n}},
	})
}

// write enqueues the columns.
func (d *dedup) write(out *UniqueChains) error {
	runs, k := out.Count, d.kernels
	if err := firstError(temporary(d, &d.starts, runs+1), temporary(d, &d.groups, runs)); err != nil {
		return err
	}
	return d.s.submit(d.st, func(sc cuda.Scope) error {
		hashes, rows := d.pairs.keys.Addr(), d.pairs.values.Addr()
		err := launchRows(sc, k.placeRuns, d.st, d.n, &placeRunsParams{
			Hashes: hashes, Heads: d.heads.params(), Starts: d.starts.Addr(), Runs: runs, Count: d.n,
		})
		if err == nil && runs > 0 {
			err = launchRows(sc, k.writeGroups, d.st, runs, &writeGroupsParams{
				Paths: d.paths(), Rows: rows, Starts: d.starts.Addr(), Firsts: d.firsts.params(), Groups: d.groups.Addr(),
				Representative: out.Representative.Addr(), DiscoveryCount: out.DiscoveryCount.Addr(),
				BounceCount: out.BounceCount.Addr(), PrimIDs: out.PrimIDs.Addr(),
				KeysOut: out.SourceKey.Addr(), OriginsOut: out.RayO.Addr(), RowBase: d.in.RowBase, Count: runs,
			})
		}
		if err != nil {
			return err
		}
		return launchRows(sc, k.writeRowGroup, d.st, d.n, &writeRowGroupsParams{
			Hashes: hashes, Rows: rows, Heads: d.heads.params(), Groups: d.groups.Addr(),
			GroupOfRow: out.GroupOfRow.Addr(), Count: d.n,
		})
	})
}
