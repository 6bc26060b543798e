package superbatch

import (
	"context"
	"sync"

	"gdb/internal/bug"
)

// ahead is a superbatch that a goroutine samples and plans. The caller calls wait or stop.
type ahead struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when s and err are set
	s      *superbatch
	err    error
}

// begin starts a goroutine that builds superbatch w. Only one may be under way at a time, because
// all of them use the builder's cache state.
func (b *builder) begin(w wanted) *ahead {
	ctx, cancel := context.WithCancel(context.Background())
	a := &ahead{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer bug.Catch()
		defer close(a.done)
		a.s, a.err = b.build(ctx, w)
	}()
	return a
}

// wait returns the superbatch, which belongs to the caller from then on. If ctx ends first, the
// work goes on and wait may be called again.
func (a *ahead) wait(ctx context.Context) (*superbatch, error) {
	select {
	case <-a.done:
		return a.s, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop cancels the work, waits until the goroutine has ended and closes what it built.
func (a *ahead) stop() {
	a.cancel()
	<-a.done
	if a.s != nil {
		a.s.close()
	}
}

// spanAhead is a span that a goroutine decides on and, where that is worth it, sweeps for.
type spanAhead struct {
	cancel context.CancelFunc
	fitted chan struct{} // closed when it takes no more memory
	done   chan struct{} // closed when span and err are set
	span   *span
	err    error
}

// beginSpan starts a goroutine that makes the span of s whose first batch is at step. Only one may
// be under way at a time.
func (b *builder) beginSpan(s *superbatch, step uint64, m alongside) *spanAhead {
	ctx, cancel := context.WithCancel(context.Background())
	a := &spanAhead{cancel: cancel, fitted: make(chan struct{}), done: make(chan struct{})}
	fitted := sync.OnceFunc(func() { close(a.fitted) })
	go func() {
		defer bug.Catch()
		defer close(a.done)
		defer fitted()
		a.span, a.err = b.makeSpan(ctx, s, step, m, fitted)
	}()
	return a
}

// stop cancels the work, waits until the goroutine has ended and removes the files it left.
func (a *spanAhead) stop() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
	a.span.close()
}
