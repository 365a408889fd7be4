package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/raymux/raymux/tools/raymux/fileio"
	"github.com/raymux/raymux/tools/raymux/npy"
)

// note tells the user something that changes no exit status.
func (p *program) note(format string, args ...any) {
	p.progress("")
	fmt.Fprintf(p.stderr, "raymux: note: %s\n", fmt.Sprintf(format, args...))
}

// progress shows what the program is doing, on a terminal only. An empty text clears the line.
func (p *program) progress(text string) {
	if !p.terminal {
		return
	}
	if text != "" {
		text += " ..."
	}
	fmt.Fprintf(p.stderr, "\r\x1b[K%s", text)
}

// logger turns the library's warnings into notes.
func (p *program) logger() *slog.Logger { return slog.New(noteHandler{p}) }

type noteHandler struct{ p *program }

func (h noteHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h noteHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, ", %s %v", a.Key, a.Value)
		return true
	})
	h.p.note("%s", b.String())
	return nil
}

// The library attaches neither attributes nor groups to a logger, so both stay without effect.
func (h noteHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h noteHandler) WithGroup(string) slog.Handler      { return h }

// write makes the output file of the columns.
func (p *program) write(ctx context.Context, out string, columns []npy.Column) error {
	p.progress("writing " + out)
	return forFile("-out", out, fileio.WriteAtomic(ctx, p.fs, out, func(w io.Writer) error {
		if isArchive(out) {
			return npy.WriteArchive(w, columns)
		}
		return npy.Write(w, columns[0])
	}))
}

// stopwatch measures the stages of a run for -info.
type stopwatch struct {
	last   time.Time
	stages []string
}

func startWatch() *stopwatch { return &stopwatch{last: time.Now()} }

// lap ends a stage.
func (s *stopwatch) lap(stage string) {
	now := time.Now()
	s.stages = append(s.stages, fmt.Sprintf("%s %.3f ms", stage, float64(now.Sub(s.last).Microseconds())/1000))
	s.last = now
}

func (s *stopwatch) String() string { return strings.Join(s.stages, ", ") }
