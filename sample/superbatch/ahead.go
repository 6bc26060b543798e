package superbatch

import (
	"context"

	"gdb/internal/bug"
)

// job is work that a goroutine does ahead of its use. Its owner calls wait or stop.
type job[T any] struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when result and err are set
	result T
	err    error
}

// begin starts a goroutine that does some work.
func begin[T any](work func(ctx context.Context) (T, error)) *job[T] {
	ctx, cancel := context.WithCancel(context.Background())
	j := &job[T]{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer bug.Catch()
		defer close(j.done)
		j.result, j.err = work(ctx)
	}()
	return j
}

// wait returns the result, which belongs to the caller from then on. If ctx ends first, the work
// goes on and wait may be called again.
func (j *job[T]) wait(ctx context.Context) (result T, err error) {
	if err := await(ctx, j.done); err != nil {
		return result, err
	}
	j.cancel()
	return j.result, j.err
}

// stop cancels the work and waits until the goroutine has ended. It returns what was made.
func (j *job[T]) stop() T {
	j.cancel()
	<-j.done
	return j.result
}

// await waits until c is closed or ctx ends.
func await(ctx context.Context, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
