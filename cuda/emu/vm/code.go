package vm

// col is a virtual register of a warp: one value per lane. Values narrower than 64 bits are kept
// zero-extended, so that an operation may look at as many bits as it likes.
type col [32]uint64

const fullMask = ^uint32(0)

// execFn performs an instruction for the lanes of m, which is never zero.
type execFn func(w *warp, in *inst, m uint32)

// kind tells the interpreter's loop which instructions change the flow of control.
type kind uint8

const (
	kindPlain  kind = iota // exec, then the next position
	kindJump               // to target
	kindBranch             // guarded lanes to target, the others to other
	kindSwitch             // brx.idx: to targets[a]
	kindCall
	kindReturn
	kindExit
	kindBarrier // block-wide
	kindSync    // warp-wide with a member mask: exec runs once all of its live lanes are here
	kindWarpBar // bar.warp.sync
)

// inst is one compiled instruction. Column numbers are only held in d, a, b, c and v, because
// register allocation renumbers them.
type inst struct {
	exec       execFn
	d, a, b, c int32 // columns; d is written if def is set
	v          []int32
	x          uint64 // immediate: offset, table, mask
	guard      int32  // predicate; 0 means always
	flip       uint32 // all ones: guarded by the negated predicate
	target     int32  // position (while compiling: block)
	other      int32
	line       int32
	p, q       int32 // predicates written or read
	targets    []int32
	call       *callSite
	bar        *barrierOp
	kind       kind
	site       int32 // memory instructions: slot of the last allocation
	free       bool  // made by the compiler, not counted
	def        bool  // d is written
	vdef       bool  // v is written, else read
	ua, ub, uc bool  // a, b, c are read
}

// callSite describes a call: which function, and where arguments and results lie in the caller's
// parameter area.
type callSite struct {
	callee *function // nil for an indirect call, whose address is in column a
	proto  *funcAST  // parameters and results as the call passes them
	args   []paramCopy
	rets   []paramCopy
}

// paramCopy moves bytes between an area of the caller and one of the callee.
type paramCopy struct{ caller, callee, size uint32 }

// barrierOp is a block-wide barrier instruction.
type barrierOp struct {
	arrive bool  // does not wait
	count  bool  // column b holds the number of threads
	red    uint8 // reduction: 0 none, else '&', '|', '+'
	negP   bool
}

// constCol is a column that holds the same value in all lanes.
type constCol struct {
	col    int32
	value  uint64
	symbol string // if not empty the value is added to the address of this module variable
}

type specialCol struct {
	col int32
	id  special
}

// function is a compiled entry or device function.
type function struct {
	name    string
	index   int
	code    []inst
	loopEnd []int32 // for the position of a loop header: end of the loop; else 0
	cols    int
	preds   int
	consts  []constCol
	special []specialCol
	locals  []int32 // columns with addresses of local variables, and their offsets
	localOf []uint32
	params  []variable
	rets    []variable
	// Bytes of a lane's parameter area: formal parameters first, then results, then .param
	// variables of the body. A kernel's own parameters are not in it.
	paramArea  uint32
	retOffset  uint32
	localBytes uint32
	regs       int
	entry      bool
	ast        *funcAST
}
