//go:build linux && (amd64 || arm64) && !nocuda

package dl

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// machine is the ELF machine number of this build.
var machine = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]

// checkFile refuses a file that the loader cannot use, with a cause that says
// more than the loader would.
func checkFile(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return cause(err)
	}
	if isStub(real) {
		return ErrLinkStub
	}
	f, err := os.Open(real)
	if err != nil {
		return cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return cause(err)
	}
	switch {
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder", ErrNotLibrary)
	case info.Size() == 0:
		return ErrEmptyFile
	}
	// The first 20 bytes of an ELF file: identification, type, machine.
	var head [20]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return fmt.Errorf("%w: %d bytes", ErrNotLibrary, info.Size())
	}
	if string(head[:4]) != elf.ELFMAG {
		return ErrNotLibrary
	}
	if c := elf.Class(head[elf.EI_CLASS]); c != elf.ELFCLASS64 {
		return fmt.Errorf("%w: %v, this program needs %v", ErrWrongMachine, c, elf.ELFCLASS64)
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(head[18:])); m != machine {
		return fmt.Errorf("%w: %v, this program needs %v", ErrWrongMachine, m, machine)
	}
	return nil
}

// cause drops the path from a file error: the attempt names it already.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// fileOf finds the file whose mapping holds an address; empty when unknown.
func fileOf(fn uintptr) string {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer f.Close()
	return mappedFile(f, fn)
}

// mappedFile reads lines of the form
// "start-end perms offset dev inode   /path" for the one around addr.
func mappedFile(maps io.Reader, addr uintptr) string {
	sc := bufio.NewScanner(maps)
	for sc.Scan() {
		span, rest, _ := strings.Cut(sc.Text(), " ")
		lo, hi, _ := strings.Cut(span, "-")
		start, err1 := strconv.ParseUint(lo, 16, 64)
		end, err2 := strconv.ParseUint(hi, 16, 64)
		if err1 != nil || err2 != nil || uint64(addr) < start || uint64(addr) >= end {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return ""
	}
	return ""
}
