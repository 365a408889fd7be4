package ptx

// Entry names one kernel and, through its type argument, the struct that the
// kernel takes by value. ptxaudit reads these declarations; see the package
// documentation for their form.
type Entry[Params any] struct {
	Module string // module that exports the kernel
	Name   string // the kernel's name in that module
}
