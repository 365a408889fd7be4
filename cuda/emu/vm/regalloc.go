package vm

// allocate gives columns to registers.
func (c *compiler) allocate(blocks []basicBlock) {
	c.f.cols = int(c.cols)
	c.f.regs = int(c.cols)
}
