package cuda

import (
	"context"
	"runtime"
	"time"
)

// Waiting is by polling, because a blocking driver call can be neither
// cancelled nor ended by a deadline.
const (
	// pollBusy is how long a wait polls without sleeping. A sleep takes up to a
	// millisecond whatever its length, which would dominate short waits: those for
	// millions of rays and for the build of a tree are of a few milliseconds.
	pollBusy = 5 * time.Millisecond
	// pollTight is how long it does not even yield to other goroutines.
	pollTight = 20 * time.Microsecond
	// pollMaxSleep bounds how late the end of a long wait is noticed.
	pollMaxSleep = 2 * time.Millisecond
)

// poll calls ready until it reports true or fails, or ctx ends.
func poll(ctx context.Context, ready func() (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	for {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		waited := time.Since(start)
		switch {
		case waited < pollTight:
		case waited < pollBusy:
			runtime.Gosched()
		default:
			t := time.NewTimer(min(waited/16, pollMaxSleep))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			}
		}
	}
}
