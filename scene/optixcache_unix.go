//go:build unix

package scene

import (
	"io/fs"
	"os"
	"syscall"
)

// ownDir reports whether a folder belongs to this user and nobody else may
// enter it.
func ownDir(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
