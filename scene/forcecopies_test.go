package scene

// ForceCopies makes AccumulateReflections use so many copies of its sums; 0: as many as
// pay.
func (s *Scene) ForceCopies(n int64) { s.forceCopies = n }

// ForceRowsPerLaunch splits launches.
func (s *Scene) ForceRowsPerLaunch(n int64) { s.rowsPerLaunch = n }

// ForceTubeLanes sets the busy and idle lanes of the search of AccumulateReflections.
func (s *Scene) ForceTubeLanes(busy, idle uint32) { s.tubeLanes = [2]uint32{busy, idle} }

// TubeLanes are those that are in use.
func (s *Scene) TubeLanes() [2]uint32 { return s.tubeLanes }
