package emu

import "golang.org/x/sys/windows"

// threadID identifies the calling OS thread.
func threadID() int { return int(windows.GetCurrentThreadId()) }
