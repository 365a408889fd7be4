package scene

// Window selects lanes [Offset, Offset+Count) of all lanes of a call; a negative Count
// is all from Offset on. Lanes keep their numbers, and with them their random numbers and
// weights: disjoint windows that cover all lanes do exactly the work of a call without a
// window, and their accumulators add up to the same bits.
type Window struct{ Offset, Count int64 }

// resolve is the lanes that the window, which may be nil, selects of total.
func (w *Window) resolve(op string, total int64) (begin, count int64, err error) {
	if w == nil {
		return 0, total, nil
	}
	if w.Offset < 0 || w.Offset > total {
		return 0, 0, badArg(op, "Window.Offset", "is %d, want 0 to %d, the number of lanes", w.Offset, total)
	}
	if w.Count > total-w.Offset {
		return 0, 0, badArg(op, "Window.Count", "is %d, want at most %d from lane %d on (of %d), or a negative number for all of them",
			w.Count, total-w.Offset, w.Offset, total)
	}
	if w.Count < 0 {
		return w.Offset, total - w.Offset, nil
	}
	return w.Offset, w.Count, nil
}
