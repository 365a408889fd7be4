package cuda_test

import "syscall"

// threadID tells OS threads apart, as the driver does.
func threadID() int { return syscall.Gettid() }
