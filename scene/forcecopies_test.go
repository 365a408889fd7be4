package scene

// ForceCopies makes AccumulateReflections use so many copies of its sums; 0: as many as
// pay.
func (s *Scene) ForceCopies(n int64) { s.forceCopies = n }

// ForceRowsPerLaunch splits launches.
func (s *Scene) ForceRowsPerLaunch(n int64) { s.rowsPerLaunch = n }
