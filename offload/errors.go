package offload

import (
	"fmt"

	"github.com/raymux/raymux/chunked"
)

// StreamError says how far a streamed call came.
type StreamError struct {
	Op string // key of the operation
	// FailedStart is the first row of the chunk that was to be delivered next, or -1
	// when all had been.
	FailedStart int64
	// Delivered are the rows of the chunks that the consumer took, in the order in
	// which it got them. They stay delivered.
	Delivered []chunked.Range
	Err       error
}

func (e *StreamError) Error() string {
	rows := int64(0)
	for _, r := range e.Delivered {
		rows += r.Len()
	}
	return fmt.Sprintf("offload: %s ended at row %d with %d rows in %d chunks delivered: %v", e.Op, e.FailedStart, rows, len(e.Delivered), e.Err)
}

// Unwrap is the cause.
func (e *StreamError) Unwrap() error { return e.Err }

// PanicError is a panic of a consumer.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the goroutine, at the panic
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("offload: the consumer panicked: %v", e.Value)
}

// Unwrap is the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
