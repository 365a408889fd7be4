//go:build !linux

package cuda_test

// threadID makes all threads one: the tests of package cuda that need to tell
// threads apart run on Linux.
func threadID() int { return 1 }
