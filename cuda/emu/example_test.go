package emu_test

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/raymux/raymux/cuda/cuapi"
	"github.com/raymux/raymux/cuda/emu"
)

// A kernel that stores past the end of its buffer is caught at the PTX line
// that does it.
func ExampleNew() {
	e, err := emu.New(2, emu.WithMemory(64<<20))
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime.LockOSThread() // the current context belongs to the thread
	defer runtime.UnlockOSThread()
	e.Init(0)
	ctx, _ := e.DevicePrimaryCtxRetain(1)
	e.CtxSetCurrent(ctx)

	m, _ := e.ModuleLoadDataEx([]byte(`.version 8.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mad.wide.u32 %rd2, %r1, 4, %rd1;
	st.global.u32 [%rd2], %r1;
	ret;
}`), nil)
	f, _ := e.ModuleGetFunction(m, "fill")
	out, _ := e.MemAlloc(10 * 4)
	e.LaunchKernel(f, cuapi.D1(1), cuapi.D1(11), 0, 0, binary.LittleEndian.AppendUint64(nil, uint64(out)))
	fmt.Println(e.CtxSynchronize())
	fault := e.LastFault()
	fmt.Println(fault.Kind, fault.Kernel, fault.PTXLine, fault.Thread, fault.Address-uint64(out))
	// Output:
	// CUDA_ERROR_ILLEGAL_ADDRESS (700)
	// out of bounds fill 11 [10 0 0] 40
}
