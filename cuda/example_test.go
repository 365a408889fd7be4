package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/raymux/raymux/cuda"
	"github.com/raymux/raymux/cuda/cuapi"
)

// scalePTX multiplies n values at x by a factor.
const scalePTX = `
.version 7.0
.target sm_75
.address_size 64

.visible .entry scale(.param .align 8 .b8 p[16])
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<3>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [p+8];
	ld.param.f32 %f1, [p+12];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra $DONE;
	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.s32 %rd3, %r5, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.f32 %f2, [%rd4];
	mul.rn.f32 %f2, %f2, %f1;
	st.global.f32 [%rd4], %f2;
$DONE:
	ret;
}
`

type scaleParams struct {
	X  uint64 // device address of N values
	N  int32
	By float32
}

// demo opens one emulated device with a stream and the scale kernel.
func demo() (*cuda.Context, *cuda.Stream, *cuda.Function, func()) {
	drv, err := cuda.OpenEmulator(1)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := drv.Device(0)
	if err != nil {
		log.Fatal(err)
	}
	c, err := dev.Retain()
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.NewStream(cuda.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := c.LoadModule([]byte(scalePTX), cuda.JITOptions{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := m.Function("scale")
	if err != nil {
		log.Fatal(err)
	}
	return c, s, f, func() {
		if err := errors.Join(m.Close(), s.Close(), c.Close(), drv.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

func Example() {
	ctx := context.Background()
	_, s, scale, done := demo() // Open, Retain, NewStream, LoadModule, Function
	defer done()

	x, err := cuda.Upload(ctx, s, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer cuda.Free(x)
	p := scaleParams{X: x.Addr(), N: int32(x.Len()), By: 2}
	if err := scale.Launch(s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p)); err != nil {
		log.Fatal(err)
	}
	y, err := cuda.Download(ctx, s, x)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [2 4 6]
}

func ExampleOpenEmulator() {
	drv, err := cuda.OpenEmulator(2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drv.DeviceCount(), drv.Emulated())
	// Output: 2 true
}

func ExampleContext_Enter() {
	c, s, scale, done := demo()
	defer done()
	x, err := cuda.Upload(context.Background(), s, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer cuda.Free(x)

	sc, err := c.Enter()
	if err != nil {
		log.Fatal(err)
	}
	p := scaleParams{X: x.Addr(), N: int32(x.Len()), By: 0.5}
	for range 3 {
		if err := sc.Launch(scale, s, cuapi.D1(1), cuapi.D1(32), 0, cuda.ParamBytes(&p)); err != nil {
			log.Fatal(err)
		}
	}
	if err := sc.Exit(); err != nil {
		log.Fatal(err)
	}
	y, err := cuda.Download(context.Background(), s, x)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [0.125 0.25 0.375]
}

func ExamplePoolAlloc() {
	c, s, _, done := demo()
	defer done()
	pool := c.Pool()
	for range 100 {
		x, err := cuda.PoolAlloc[float32](pool, s, 1<<16)
		if err != nil {
			log.Fatal(err)
		}
		if err := cuda.Fill32(s, x, 0); err != nil { // any work on s
			log.Fatal(err)
		}
		if err := cuda.PoolFree(pool, s, x); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(pool.Stats().DriverAllocs)
	// Output: 1
}

func ExampleSlice_Sub() {
	_, s, _, done := demo()
	defer done()
	x, err := cuda.Upload(context.Background(), s, []int32{1, 2, 3, 4})
	if err != nil {
		log.Fatal(err)
	}
	defer cuda.Free(x)
	mid, err := x.Sub(1, 3)
	if err != nil {
		log.Fatal(err)
	}
	y, err := cuda.Download(context.Background(), s, mid)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	_, err = x.Sub(3, 5)
	fmt.Println(err)
	// Output:
	// [2 3]
	// cuda: Slice.Sub: i, j: 3 to 5 given, the slice has length 4 and 0 <= i <= j <= 4 is needed
}

func ExampleContext_Close() {
	drv, err := cuda.OpenEmulator(1)
	if err != nil {
		log.Fatal(err)
	}
	c, err := drv.Devices()[0].Retain()
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.NewStream(cuda.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var leak *cuda.LeakError // its text also says where the stream was made
	if errors.As(c.Close(), &leak) {
		fmt.Printf("%s was closed before %d %s\n", leak.Parent, leak.Leaks[0].Count, leak.Leaks[0].Kind)
	}
	fmt.Println(s.Close()) // releases the context too
	// Output:
	// the context of device 0 was closed before 1 stream
	// <nil>
}
