package runtimefile

import (
	"errors"
	"sync"

	"gdb/internal/bug"
)

// Remover removes files beside other work: the file system takes most of a second for one of some
// GiB. What is written next waits for it: the bound of the storage takes them for gone.
type Remover struct {
	mu  sync.Mutex // held as long as files are removed
	err error
}

// Begin starts to remove files when those before are gone.
func (r *Remover) Begin(remove func() error) {
	r.mu.Lock()
	go func() {
		defer bug.Catch()
		defer r.mu.Unlock()
		r.err = errors.Join(r.err, remove())
	}()
}

// Wait returns when no file is being removed any more, with what went wrong since it last did.
func (r *Remover) Wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	r.err = nil
	return err
}
