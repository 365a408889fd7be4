package emu

import "golang.org/x/sys/unix"

// threadID identifies the calling OS thread.
func threadID() int { return unix.Gettid() }
