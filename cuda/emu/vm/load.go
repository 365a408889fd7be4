package vm

import (
	"slices"
	"strings"
)

// maxText bounds the text that Load accepts.
const maxText = 64 << 20

// Load parses, checks and compiles PTX text. Whatever the machine does not know is refused with a
// *LoadError that names line and opcode; Load never panics.
func Load(src []byte) (*Program, error) {
	if len(src) > maxText {
		return nil, &LoadError{Line: 1, Msg: "text is longer than 64 MiB"}
	}
	text := strings.TrimRight(string(src), "\x00") // NVRTC's text ends with a NUL
	mod, err := parseModule(text)
	if err != nil {
		return nil, err
	}
	return build(mod, text)
}

func build(mod *moduleAST, text string) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			p, err = nil, pe.err
		}
	}()
	p = &Program{major: mod.major, minor: mod.minor, target: mod.target}
	p.lines = strings.Split(text, "\n")
	for i := range p.lines {
		p.lines[i] = strings.TrimSpace(p.lines[i])
	}
	shared, globals := map[string]*variable{}, map[string]bool{}
	for _, v := range mod.vars {
		if v.space == SpaceShared {
			shared[v.name] = v
			continue
		}
		if v.extern {
			panic(parseError{&LoadError{Line: v.line, Msg: "variable " + v.name + " is defined in another module"}})
		}
		globals[v.name] = true
		p.globals = append(p.globals, Variable{Name: v.name, Space: v.space, Size: v.size, Align: v.align,
			Init: v.init, Relocs: v.relocs, Line: v.line})
	}
	p.byName = make(map[string]*function, len(mod.funcs))
	for i, a := range mod.funcs {
		f := &function{name: a.name, index: i, entry: a.entry, ast: a, preds: 2, params: a.params, rets: a.rets}
		p.funcs = append(p.funcs, f)
		p.byName[f.name] = f
	}
	for _, v := range p.globals {
		for _, r := range v.Relocs {
			if _, ok := p.FunctionAddress(r.Symbol); !ok && !globals[r.Symbol] {
				panic(parseError{&LoadError{Line: v.Line, Msg: v.Name + ": unknown symbol " + r.Symbol}})
			}
		}
	}
	offsets, sizes, dynamic := placeShared(mod)
	calls := false
	for _, f := range p.funcs {
		if !f.ast.hasBody {
			continue
		}
		for _, v := range dynamic {
			offsets[v] = sizes[f.ast]
		}
		c := &compiler{mod: mod, prog: p, f: f, regCols: map[regKey]register{}, predIdx: map[regKey]int32{},
			constIdx: map[uint64]int32{}, symIdx: map[string]int32{}, srIdx: map[special]int32{},
			localIdx: map[uint32]int32{}, varOff: offsets, shared: shared, globals: globals}
		c.compile()
		calls = calls || c.calls
	}
	for _, f := range p.funcs {
		if f.entry {
			p.kernels = append(p.kernels, newKernel(p, f, uint32(sizes[f.ast]), calls))
		}
	}
	return p, nil
}

// placeShared gives every shared variable an offset and returns how many bytes each kernel needs.
// What functions and the module declare comes first, then the kernel's own variables, so that
// kernels overlay each other. Extern arrays begin where a kernel's variables end; if device functions may refer to
// them, there is one such place for all kernels.
func placeShared(mod *moduleAST) (offsets map[*variable]uint64, sizes map[*funcAST]uint64, dynamic []*variable) {
	offsets, sizes = map[*variable]uint64{}, map[*funcAST]uint64{}
	place := func(at uint64, vars []*variable) uint64 {
		for _, v := range vars {
			if v.space != SpaceShared || v.extern {
				continue
			}
			at = alignUp(at, v.align)
			offsets[v] = at
			if at += v.size; at > maxSharedBytes {
				panic(parseError{&LoadError{Line: v.line, Msg: "static shared memory is too large"}})
			}
		}
		return at
	}
	align := uint64(1)
	for _, v := range mod.vars {
		if v.space == SpaceShared && v.extern {
			dynamic = append(dynamic, v)
			align = max(align, v.align)
		}
	}
	base, functions := place(0, mod.vars), false
	for _, f := range mod.funcs {
		if !f.entry {
			base = place(base, f.vars)
			functions = functions || f.hasBody
		}
	}
	most := uint64(0)
	for _, f := range mod.funcs {
		if f.entry {
			sizes[f] = place(base, f.vars)
			if len(dynamic) > 0 {
				sizes[f] = alignUp(sizes[f], align)
			}
			most = max(most, sizes[f])
		}
	}
	for _, f := range mod.funcs {
		if !f.entry || functions && len(dynamic) > 0 {
			sizes[f] = most
		}
	}
	return offsets, sizes, dynamic
}

func newKernel(p *Program, f *function, shared uint32, calls bool) *Kernel {
	k := &Kernel{Name: f.name, SharedBytes: shared, LocalBytes: f.localBytes, MaxThreads: f.ast.maxntid,
		Regs: f.regs, Line: f.ast.line, program: p, code: f, calls: calls}
	for _, v := range f.params {
		k.Params = append(k.Params, Param{Name: v.name, Offset: uint32(v.offset), Size: uint32(v.size), Align: uint32(v.align)})
		k.ParamSize = uint32(v.offset + v.size)
	}
	return k
}

// compile fills the function.
func (c *compiler) compile() {
	c.placeLocals()
	body := c.f.ast.body
	for i := range body {
		c.starts = append(c.starts, len(c.insts))
		c.statement(&body[i])
	}
	c.s = &statement{line: c.f.ast.lastLine, opcode: "}"}
	c.starts = append(c.starts, len(c.insts))
	c.emit(inst{kind: kindReturn, free: true})
	c.link()
}

// placeLocals lays out local memory and the parameter area.
func (c *compiler) placeLocals() {
	f := c.f
	var local, area uint64
	if !f.entry {
		for _, v := range f.params {
			area = max(area, v.offset+v.size)
		}
		area = alignUp(area, 16)
		f.retOffset = uint32(area)
		for _, v := range f.rets {
			area = max(area, uint64(f.retOffset)+v.offset+v.size)
		}
	}
	for _, v := range f.ast.vars {
		at, limit := &local, uint64(maxLocalBytes)
		switch v.space {
		case SpaceParam:
			at, limit = &area, 1<<20
		case SpaceLocal:
		default:
			continue
		}
		*at = alignUp(*at, v.align)
		c.varOff[v] = *at
		if *at += v.size; *at > limit {
			panic(parseError{&LoadError{Line: v.line, Msg: "variables of this space take too much memory"}})
		}
	}
	f.localBytes = uint32(local)
	f.paramArea = uint32(alignUp(area, 16))
}

// link splits the instructions into blocks, lays them out and resolves targets. Until then targets
// are statement numbers.
func (c *compiler) link() {
	n := len(c.insts)
	leader := make([]bool, n+1)
	leader[0] = true
	at := func(stmt int32) int { return c.starts[stmt] }
	for i := range c.insts {
		in := &c.insts[i]
		switch in.kind {
		case kindBranch, kindJump:
			leader[at(in.target)] = true
			leader[i+1] = true
		case kindSwitch:
			for _, t := range in.targets {
				leader[at(t)] = true
			}
			leader[i+1] = true
		case kindReturn, kindExit:
			leader[i+1] = true
		}
	}
	blockOf := make([]int, n+1)
	var blocks []basicBlock
	for i := range n {
		if leader[i] {
			blocks = append(blocks, basicBlock{first: i})
		}
		blockOf[i] = len(blocks) - 1
		blocks[len(blocks)-1].last = i + 1
	}
	for b := range blocks {
		blk := &blocks[b]
		last := &c.insts[blk.last-1]
		next := b+1 < len(blocks)
		switch last.kind {
		case kindJump:
			blk.succ = []int{blockOf[at(last.target)]}
			next = false
		case kindBranch:
			blk.succ = append(blk.succ, blockOf[at(last.target)])
		case kindSwitch:
			for _, t := range last.targets {
				if s := blockOf[at(t)]; !slices.Contains(blk.succ, s) {
					blk.succ = append(blk.succ, s)
				}
			}
			next = last.guard != 0 && next
		case kindReturn, kindExit:
			next = last.guard != 0 && next
		}
		if next && !slices.Contains(blk.succ, b+1) {
			blk.succ = append(blk.succ, b+1)
		}
	}
	c.allocate(blocks)
	c.assemble(blocks, blockOf, at)
}

// assemble writes the code in layout order. Blocks that fall through to a block that does not follow get a jump.
func (c *compiler) assemble(blocks []basicBlock, blockOf []int, at func(int32) int) {
	l := layoutBlocks(blocks)
	pos := make([]int32, len(blocks))
	size := int32(0)
	falls := func(b int) bool { // control may reach the next block of the text
		last := &c.insts[blocks[b].last-1]
		switch last.kind {
		case kindJump, kindBranch:
			return false
		case kindSwitch, kindReturn, kindExit:
			return last.guard != 0
		}
		return true
	}
	for _, b := range l.order {
		pos[b] = size
		size += int32(blocks[b].last - blocks[b].first)
		if falls(b) {
			size++
		}
	}
	code := make([]inst, 0, size)
	for _, b := range l.order {
		for i := blocks[b].first; i < blocks[b].last; i++ {
			in := c.insts[i]
			switch in.kind {
			case kindBranch:
				in.target, in.other = pos[blockOf[at(in.target)]], pos[blockOf[i+1]]
			case kindJump:
				in.target = pos[blockOf[at(in.target)]]
			case kindSwitch:
				targets := make([]int32, len(in.targets))
				for k, t := range in.targets {
					targets[k] = pos[blockOf[at(t)]]
				}
				in.targets = targets
			}
			code = append(code, in)
		}
		if falls(b) {
			code = append(code, inst{kind: kindJump, free: true, target: pos[b+1], line: code[len(code)-1].line})
		}
	}
	c.f.code = code
	c.f.loopEnd = make([]int32, len(code))
	for b, end := range l.end {
		e := size
		if end < len(l.order) {
			e = pos[l.order[end]]
		}
		c.f.loopEnd[pos[b]] = e
	}
}
