//go:build !linux && !windows

package emu

// threadID is the same for all threads where the system offers no cheap
// identity: the current context is then a property of the process.
func threadID() int { return 0 }
