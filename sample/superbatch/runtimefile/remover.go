package runtimefile

import (
	"errors"
	"sync"

	"gdb/internal/bug"
)

// Remover removes files while other work goes on: a file system takes most of a second to remove a
// file of some GiB. Whoever writes files next calls Wait first, because the bound on storage counts
// these as removed.
type Remover struct {
	mu  sync.Mutex // held as long as files are removed
	err error
}

// Begin starts to remove files, once those of earlier calls are removed.
func (r *Remover) Begin(remove func() error) {
	r.mu.Lock()
	go func() {
		defer bug.Catch()
		defer r.mu.Unlock()
		r.err = errors.Join(r.err, remove())
	}()
}

// Wait waits until no file is being removed, and returns the errors since the last call.
func (r *Remover) Wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	r.err = nil
	return err
}
