package optixabi

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/raymux/raymux/cuda/dl"
)

// LogLevel is the highest level of messages that the library sends: each level
// includes those before it.
type LogLevel uint32

// Values of LogLevel.
const (
	LogNone    LogLevel = 0
	LogFatal   LogLevel = 1
	LogError   LogLevel = 2
	LogWarning LogLevel = 3
	LogStatus  LogLevel = 4
)

// slog is the level of the message for the Go logger.
func (l LogLevel) slog() slog.Level {
	switch l {
	case LogFatal, LogError:
		return slog.LevelError
	case LogWarning:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// logRegistry maps the numbers that C hands back to loggers. C never holds a
// Go pointer.
type logRegistry struct {
	mu   sync.Mutex
	last uintptr
	m    map[uintptr]*slog.Logger
}

var loggers = logRegistry{m: map[uintptr]*slog.Logger{}}

func (r *logRegistry) add(l *slog.Logger) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.m[r.last] = l
	return r.last
}

func (r *logRegistry) get(key uintptr) *slog.Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[key]
}

func (r *logRegistry) remove(key uintptr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.m, key)
}

// logCallback is the one C function pointer of the process: pointers are never
// freed and their number is limited.
var logCallback = sync.OnceValue(func() uintptr { return dl.NewCallback(receiveLog) })

// logTarget is what C needs to reach a logger: a function and its data, both 0
// for none.
func logTarget(l *slog.Logger) (fn, key uintptr) {
	if l == nil {
		return 0, 0
	}
	return logCallback(), loggers.add(l)
}

// receiveLog is called by the library, from any thread and maybe from several
// at once. No lock is held while the logger runs, and a panic of its handler
// must not unwind into C.
func receiveLog(level uint32, tag, message, data uintptr) (ignored uintptr) {
	defer func() { _ = recover() }()
	l := loggers.get(data)
	if l == nil {
		return 0 // a message under way while its context was destroyed
	}
	l.Log(context.Background(), LogLevel(level).slog(), strings.TrimRight(foreignText(message), "\r\n "),
		"source", "optix", "tag", strings.TrimSpace(foreignText(tag)))
	return 0
}
