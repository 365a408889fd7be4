package offload

import (
	"context"
	"errors"
	"iter"
)

// errStopped is what a loop that was left tells the call.
var errStopped = errors.New("offload: the loop was left")

// Seq is a streamed call as a sequence, for a loop whose body takes the place of the
// consumer. run makes the call with a consumer. The sequence yields the chunks, and at the
// end the error of the call if there is one; it may be ranged over several times, and makes
// the call each time. A panic of the body ends the call and goes on.
func Seq[R any](run func(Func[R]) error) iter.Seq2[Chunk[R], error] {
	return func(yield func(Chunk[R], error) bool) {
		err := run(func(_ context.Context, _ int64, c Chunk[R]) error {
			if !yield(c, nil) {
				return errStopped
			}
			return nil
		})
		var p *PanicError
		switch {
		case err == nil || errors.Is(err, errStopped):
		case errors.As(err, &p):
			panic(p.Value)
		default:
			yield(Chunk[R]{}, err)
		}
	}
}
