package chunked

import "fmt"

// Kind says how a call is dispatched.
type Kind string

// Kinds of dispatch.
const (
	KindSingle      Kind = "single"       // the plain scene of a set of one device
	KindMaster      Kind = "master"       // the single-device call, on the master
	KindDirect      Kind = "direct"       // one launch per device on the master's buffers
	KindPipelined   Kind = "pipelined"    // remote shards are copied in chunks that overlap computation
	KindSharded     Kind = "sharded"      // remote shards are copied in one chunk
	KindChunked     Kind = "chunked"      // every shard is cut to a size
	KindLaneSharded Kind = "lane-sharded" // an accumulation, one launch per device
	KindLaneChunked Kind = "lane-chunked" // an accumulation cut to a size, perhaps on the master alone
)

// Whole reports whether the call is the single-device call on the caller's
// buffers, in one launch.
func (k Kind) Whole() bool { return k == KindSingle || k == KindMaster }

// Chunked reports whether shards are cut to a size.
func (k Kind) Chunked() bool { return k == KindChunked || k == KindLaneChunked }

// decide chooses the kind of dispatch. Rows go to remotes only when every one
// of them gets enough to be worth a launch and two event edges; otherwise the
// call is the single-device call, not a smaller multi-device one. An option
// that limits memory engages the remotes whatever the floor says, but not for
// accumulations, whose remotes cost memory of their own.
func (in *Input) decide(p *Plan) {
	remotes, why := in.remotes(p)
	lanes := in.Op.Class == GridReduce
	switch {
	case !lanes && (in.Options.sized() || in.Hook):
		p.Kind = KindChunked
		return // with the reason for its size
	case lanes && in.Options.sized():
		p.Kind = KindLaneChunked
	case len(p.Devices) == 1:
		p.Kind = KindSingle
	case !remotes:
		p.Kind = KindMaster
	case lanes:
		p.Kind = KindLaneSharded
	case p.Transport == Direct:
		p.Kind = KindDirect
	case in.Options.NoPipeline:
		p.Kind = KindSharded
	default:
		p.Kind = KindPipelined
	}
	p.Reason = why
	if !remotes {
		p.Shards = make([]Range, len(p.Devices))
		p.Shards[0] = Range{p.Begin, p.Begin + p.Rows}
	}
}

// remotes reports whether remote devices are worth using, and why.
func (in *Input) remotes(p *Plan) (bool, string) {
	f, rows := p.Floor, in.Op.rows()
	switch {
	case len(p.Devices) == 1:
		return false, "one device"
	case p.Rows == 0:
		return false, "empty batch"
	case f.Position == 0 && in.Op.Class == SourceLane && p.Rows == in.Op.Block:
		return false, "one transmitter is not divided"
	case f.Position == 0 && in.Op.Class == SourceLane:
		return false, "the weights give no transmitter to a remote device"
	case f.Position == 0:
		return false, fmt.Sprintf("the weights give no %s to a remote device", rows)
	case !f.OK():
		return false, fmt.Sprintf("remote shard %d has %d %s < floor %d (%s)", f.Position, f.Shard, rows, f.Rows, in.Op.floorOption())
	}
	return true, fmt.Sprintf("remote shard %d has %d %s >= floor %d", f.Position, f.Shard, rows, f.Rows)
}
