package optixabi

import (
	"sync"

	"github.com/raymux/raymux/cuda/dl"
)

// Table is the functions of the library under one ABI. Its methods may be
// called from several goroutines.
type Table struct {
	lib   *Library
	facts *tableFacts
	fns   [functions]uintptr

	mu   sync.Mutex
	logs map[DeviceContext]uintptr // keys of their loggers
}

// ABI is the number that was agreed on.
func (t *Table) ABI() ABI { return t.facts.abi }

// Library is where the functions come from.
func (t *Table) Library() *Library { return t.lib }

// call passes args to a function.
func (t *Table) call(f function, b *block, args ...uintptr) Result {
	n := copy(b.args[:], args)
	return Result(int32(dl.Call(t.fns[f], b.args[:n]...)))
}

// do is call for functions whose only result is the code.
func (t *Table) do(f function, args ...uintptr) error {
	b := getBlock()
	defer b.put()
	return callError(f, t.call(f, b, args...), "")
}

// ErrorName is what the library calls a code. Result.Name says the same
// without a library.
func (t *Table) ErrorName(r Result) string { return t.errorText(fnGetErrorName, r) }

// ErrorString is a sentence of the library about a code.
func (t *Table) ErrorString(r Result) string { return t.errorText(fnGetErrorString, r) }

func (t *Table) errorText(f function, r Result) string {
	b := getBlock()
	defer b.put()
	b.args[0] = uintptr(uint32(r))
	return foreignText(dl.Call(t.fns[f], b.args[:1]...))
}

// logBytes is the room for the log of a compile or link.
const logBytes = 16 << 10

// logBuffer is the pair of memory and size that creation calls write a log to.
type logBuffer struct {
	text []byte
	size uint64 // in: room; out: length of the whole log
}

func newLog() *logBuffer { return &logBuffer{text: make([]byte, logBytes), size: logBytes} }

func (l *logBuffer) args(b *block) (text, size uintptr) { return b.host(l.text), pin(b, &l.size) }

// String is the log; one that did not fit ends with a remark.
func (l *logBuffer) String() string {
	s := cText(l.text[:min(l.size, uint64(len(l.text)))])
	if l.size > uint64(len(l.text)) {
		s += "\n[log cut]"
	}
	return s
}

// cText reads the C string at the start of a buffer.
func cText(buf []byte) string {
	for i, c := range buf {
		if c == 0 {
			return string(buf[:i])
		}
	}
	return string(buf)
}
