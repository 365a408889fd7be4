package chunked

import "fmt"

// OptionError says which option cannot be used and why.
type OptionError struct{ Option, Reason string }

func (e *OptionError) Error() string { return "chunked: " + e.Option + ": " + e.Reason }

// UnsupportedError refuses a combination that an operation does not offer.
type UnsupportedError struct{ Operation, What, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("chunked: %s does not support %s: %s", e.Operation, e.What, e.Reason)
}

// BudgetError says that the memory budget is below what a call needs on a
// device however small its chunks are.
type BudgetError struct {
	Operation        string
	Position, Device int    // of the device that needs most
	Budget           int64  // as given, in bytes
	Minimum          int64  // the smallest budget that every device can work with
	Part             string // what needs the minimum
	Advice           string
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("chunked: %s: MemoryBudget is %d B, but %s on device %d (position %d): minimum %d B. %s",
		e.Operation, e.Budget, e.Part, e.Device, e.Position, e.Minimum, e.Advice)
}

// ChunkError says that chunks of the requested size exceed the memory budget.
type ChunkError struct {
	Operation        string
	Position, Device int   // of the device that holds the fewest rows
	Rows             int64 // of a chunk
	Resident         int   // chunks that the device holds at once
	Bytes, Budget    int64 // needed and allowed
	Largest          int64 // rows of the largest chunk that every device can hold
}

func (e *ChunkError) Error() string {
	return fmt.Sprintf("chunked: %s: ChunkRays of %d rows need %d B on device %d (position %d), which holds %d chunks at once, "+
		"and MemoryBudget is %d B: use chunks of at most %d rows, or leave ChunkRays at 0", e.Operation, e.Rows, e.Bytes, e.Device,
		e.Position, e.Resident, e.Budget, e.Largest)
}

// TapeError refuses a tape of several chunks under a memory budget: every
// chunk's tape would stay in memory after the call.
type TapeError struct {
	Operation string
	Class     Class
	Chunks    int64 // of the device with most of them
	Budget    int64
}

func (e *TapeError) Error() string {
	advice := "stream the chunks (Offload) and take the derivatives of each, or raise the budget until one launch does"
	if e.Class == GridReduce {
		advice = "divide the window into several calls, or raise the budget until one launch does"
	}
	return fmt.Sprintf("chunked: %s: a tape of %d chunks is kept whole, which MemoryBudget (%d B) does not allow for: %s",
		e.Operation, e.Chunks, e.Budget, advice)
}
