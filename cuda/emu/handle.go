package emu

import "sync"

// Kinds of handles, in the top byte of the handle.
const (
	kindContext = iota + 1
	kindModule
	kindFunction
	kindStream
	kindEvent
	kindPool
)

// registry maps the handles of one kind to their objects. A handle holds its
// kind, the emulator's nonce and a number that is never used again, so a
// destroyed, foreign or mixed-up handle is never found.
type registry[H ~uintptr, T any] struct {
	mu   sync.RWMutex
	tag  uint64
	last uint64
	m    map[H]*T
}

func newRegistry[H ~uintptr, T any](kind, nonce uint64) *registry[H, T] {
	return &registry[H, T]{tag: kind<<56 | (nonce&0xffff)<<40, m: map[H]*T{}}
}

// add registers v; set, if not nil, learns the handle before anybody can find v.
func (r *registry[H, T]) add(v *T, set func(H)) H {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	h := H(r.tag | r.last)
	if set != nil {
		set(h)
	}
	r.m[h] = v
	return h
}

// get is nil for a handle that is not live.
func (r *registry[H, T]) get(h H) *T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m[h]
}

// remove is nil for a handle that is not live; of two callers one gets the object.
func (r *registry[H, T]) remove(h H) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.m[h]
	delete(r.m, h)
	return v
}

// removeIf drops every object that f selects.
func (r *registry[H, T]) removeIf(f func(*T) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h, v := range r.m {
		if f(v) {
			delete(r.m, h)
		}
	}
}
