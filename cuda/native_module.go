package cuda

import (
	"bytes"
	"math"
	"runtime"
	"unsafe"

	"github.com/raymux/raymux/cuda/cuapi"
)

// ModuleLoadDataEx adds the zero byte that ends a program text.
func (n *native) ModuleLoadDataEx(image []byte, opts *cuapi.JITOptions) (cuapi.Module, cuapi.Result) {
	text := make([]byte, len(image)+1)
	copy(text, image)
	var jit jitSlots
	if opts != nil {
		jit.set(opts)
	}
	// The slots hold addresses of log buffers that only they name, so those
	// are pinned; the rest is kept by the block and by the pins as well.
	var pins runtime.Pinner
	defer pins.Unpin()
	jit.pin(&pins, opts)

	b := n.get()
	defer n.put(b)
	r := n.call(symModuleLoadDataEx, b, b.ref(0), b.host(text), uintptr(len(jit.keys)), jit.keyAddr(), jit.valueAddr())
	runtime.KeepAlive(&jit)
	if opts != nil {
		jit.report(opts)
	}
	return cuapi.Module(b.handle(0)), r
}

func (n *native) ModuleUnload(m cuapi.Module) cuapi.Result { return n.do(symModuleUnload, uintptr(m)) }

func (n *native) ModuleGetFunction(m cuapi.Module, name string) (cuapi.Function, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r := n.call(symModuleGetFunction, b, b.ref(0), uintptr(m), b.name(name))
	return cuapi.Function(b.handle(0)), r
}

func (n *native) ModuleGetGlobal(m cuapi.Module, name string) (cuapi.DevicePtr, uint64, cuapi.Result) {
	b := n.get()
	defer n.put(b)
	r := n.call(symModuleGetGlobal, b, b.ref(0), b.ref(1), uintptr(m), b.name(name))
	return cuapi.DevicePtr(b.out[0]), b.out[1], r
}

// jitSlots are the two arrays of a module load: option numbers, and one
// pointer-sized slot each that holds a number or an address itself.
type jitSlots struct {
	keys   []cuapi.JITOption
	values []uintptr
}

func (j *jitSlots) add(k cuapi.JITOption, v uintptr) {
	j.keys = append(j.keys, k)
	j.values = append(j.values, v)
}

func (j *jitSlots) set(o *cuapi.JITOptions) {
	j.add(cuapi.JITWallTime, 0)
	if o.MaxRegisters > 0 {
		j.add(cuapi.JITMaxRegisters, uintptr(o.MaxRegisters))
	}
	if o.OptLevel >= 0 {
		j.add(cuapi.JITOptimizationLevel, uintptr(o.OptLevel))
	}
	if o.LineInfo {
		j.add(cuapi.JITGenerateLineInfo, 1)
	}
	if o.Verbose {
		j.add(cuapi.JITLogVerbose, 1)
	}
	j.addLog(cuapi.JITInfoLogBuffer, cuapi.JITInfoLogBufferSizeBytes, o.InfoLog)
	j.addLog(cuapi.JITErrorLogBuffer, cuapi.JITErrorLogBufferSizeBytes, o.ErrorLog)
}

// addLog clears the buffer first: what the driver does not write reads as an
// empty text.
func (j *jitSlots) addLog(buffer, size cuapi.JITOption, log []byte) {
	if len(log) == 0 {
		return
	}
	clear(log)
	j.add(buffer, uintptr(unsafe.Pointer(unsafe.SliceData(log))))
	j.add(size, uintptr(len(log)))
}

func (j *jitSlots) pin(p *runtime.Pinner, o *cuapi.JITOptions) {
	if len(j.keys) == 0 {
		return
	}
	p.Pin(unsafe.SliceData(j.keys))
	p.Pin(unsafe.SliceData(j.values))
	for _, log := range [][]byte{o.InfoLog, o.ErrorLog} {
		if len(log) > 0 {
			p.Pin(unsafe.SliceData(log))
		}
	}
}

func (j *jitSlots) keyAddr() uintptr   { return uintptr(unsafe.Pointer(unsafe.SliceData(j.keys))) }
func (j *jitSlots) valueAddr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(j.values))) }

// report reads back what the driver wrote into the slots.
func (j *jitSlots) report(o *cuapi.JITOptions) {
	for i, k := range j.keys {
		v := j.values[i]
		switch k {
		case cuapi.JITWallTime:
			o.WallTimeMs = math.Float32frombits(uint32(v))
		case cuapi.JITInfoLogBufferSizeBytes:
			o.InfoLog = cutLog(o.InfoLog, v)
		case cuapi.JITErrorLogBufferSizeBytes:
			o.ErrorLog = cutLog(o.ErrorLog, v)
		}
	}
}

// cutLog cuts a log to the text written: at most n bytes, which may exceed the
// buffer, and nothing from the first zero on.
func cutLog(log []byte, n uintptr) []byte {
	log = log[:min(uintptr(len(log)), n)]
	if i := bytes.IndexByte(log, 0); i >= 0 {
		log = log[:i]
	}
	return log
}
