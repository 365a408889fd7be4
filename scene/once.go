package scene

import "sync"

// once makes a value the first time that it is asked for. Other callers wait
// meanwhile, without holding a lock. A failure is not remembered: the next caller
// tries again.
type once[T any] struct {
	mu     sync.Mutex
	value  T
	made   bool
	making chan struct{} // closed when the attempt in progress ends
}

func (o *once[T]) get(create func() (T, error)) (T, error) {
	for {
		o.mu.Lock()
		if o.made {
			defer o.mu.Unlock()
			return o.value, nil
		}
		if o.making == nil {
			o.making = make(chan struct{})
			o.mu.Unlock()
			return o.attempt(create)
		}
		wait := o.making
		o.mu.Unlock()
		<-wait
	}
}

func (o *once[T]) attempt(create func() (T, error)) (v T, err error) {
	made := false
	defer func() { // also when create panics
		o.mu.Lock()
		if made {
			o.value, o.made = v, true
		}
		close(o.making)
		o.making = nil
		o.mu.Unlock()
	}()
	v, err = create()
	made = err == nil
	return v, err
}

// take returns the value, if there is one, and forgets it. The caller excludes
// attempts.
func (o *once[T]) take() (v T, made bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	v, made = o.value, o.made
	var zero T
	o.value, o.made = zero, false
	return v, made
}
