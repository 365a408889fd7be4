package offload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/raymux/raymux/chunked"
	"github.com/raymux/raymux/offload"
)

var bg = context.Background()

func chunk(begin, end int64) offload.Chunk[string] {
	return offload.NewChunk(chunked.Range{Begin: begin, End: end}, fmt.Sprint(begin), func() (string, error) { return "copy", nil })
}

// produce is a call that delivers chunks of 7 of 33 rows, and then ends with last.
func produce(ctx context.Context, last error, f offload.Func[string]) error {
	a := offload.Account{Op: "intersect_full"}
	for begin := int64(0); begin < 33; begin += 7 {
		c := chunk(begin, min(begin+7, 33))
		if err := a.Deliver(ctx, c.Range(), func() error { return f(ctx, begin, c) }); err != nil {
			return err
		}
	}
	if last != nil {
		return a.Fail(-1, last)
	}
	return nil
}

func TestChunk(t *testing.T) {
	c := chunk(14, 21)
	require.Equal(t, []any{int64(14), int64(7), "14"}, []any{c.Start, c.Rows, c.Result})
	require.Equal(t, chunked.Range{Begin: 14, End: 21}, c.Range())
	copied, err := c.Detach()
	require.NoError(t, err)
	require.Equal(t, "copy", copied)
	_, err = offload.Chunk[string]{}.Detach()
	require.ErrorIs(t, err, offload.ErrZeroChunk)
}

// However a consumer ends, the error tells how far the call came.
func TestAccount(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		at     int64 // of the chunk that fails
		fail   func(cancel context.CancelCauseFunc) error
		failed int64
	}{
		"error in the first": {0, func(context.CancelCauseFunc) error { return why }, 0},
		"error":              {14, func(context.CancelCauseFunc) error { return why }, 14},
		"error in the last":  {28, func(context.CancelCauseFunc) error { return why }, 28},
		"panic":              {7, func(context.CancelCauseFunc) error { panic(why) }, 7},
		"cancelled":          {7, func(cancel context.CancelCauseFunc) error { cancel(why); return nil }, 14},
	} {
		ctx, cancel := context.WithCancelCause(bg)
		err := produce(ctx, nil, func(_ context.Context, start int64, _ offload.Chunk[string]) error {
			if start == c.at {
				return c.fail(cancel)
			}
			return nil
		})
		cancel(nil)
		require.ErrorIs(t, err, why, name)
		var told *offload.StreamError
		require.ErrorAs(t, err, &told, name)
		require.Equal(t, c.failed, told.FailedStart, name)
		require.Len(t, told.Delivered, int(c.failed/7), name)
		for i, r := range told.Delivered {
			require.Equal(t, chunked.Range{Begin: 7 * int64(i), End: 7 * int64(i+1)}, r, name)
		}
		require.Contains(t, err.Error(), fmt.Sprintf("intersect_full ended at row %d with %d rows", c.failed, c.failed))
	}
}

func TestPanicThatIsNoError(t *testing.T) {
	err := produce(bg, nil, func(context.Context, int64, offload.Chunk[string]) error { panic(7) })
	var p *offload.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, 7, p.Value)
	require.Contains(t, string(p.Stack), "offload_test")
	require.NoError(t, p.Unwrap())
}

// A loop sees every chunk, may be left at any, and gets the error of the call last.
func TestSeq(t *testing.T) {
	why := errors.New("why")
	calls := 0
	seq := offload.Seq(func(f offload.Func[string]) error { calls++; return produce(bg, why, f) })
	for stop := range 7 {
		var starts []int64
		var last error
		for c, err := range seq {
			if err != nil {
				last = err
				break
			}
			if starts = append(starts, c.Start); len(starts) > stop {
				break
			}
		}
		require.Equal(t, []int64{0, 7, 14, 21, 28}[:min(stop+1, 5)], starts)
		require.Equal(t, stop >= 5, last != nil, "left at %d: %v", stop, last)
		if last != nil {
			require.ErrorIs(t, last, why)
		}
	}
	require.Equal(t, 7, calls)
	require.PanicsWithValue(t, "oh", func() {
		for range seq {
			panic("oh")
		}
	})
}

// A loop over a streamed call; the producer here is a stand-in for a scene.
func ExampleSeq() {
	rows := offload.Seq(func(f offload.Func[string]) error { return produce(context.Background(), nil, f) })
	for c, err := range rows {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Start, c.Rows)
		if c.Start == 14 {
			break
		}
	}
	// Output:
	// 0 7
	// 7 7
	// 14 7
}
