package superbatch

import (
	"context"
	"sync"

	"gdb/internal/bug"
)

// ahead is a superbatch that is sampled and planned by a goroutine.
type ahead struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when s and err are set
	s      *superbatch
	err    error
}

// begin starts on a superbatch; one at a time.
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

// wait returns the superbatch, which is the caller's then. Giving up a wait leaves it as it is.
func (a *ahead) wait(ctx context.Context) (*superbatch, error) {
	select {
	case <-a.done:
		return a.s, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop ends the work and waits for its end.
func (a *ahead) stop() {
	a.cancel()
	<-a.done
	if a.s != nil {
		a.s.close()
	}
}

// spanAhead is a span that is decided on, and swept for, by a goroutine.
type spanAhead struct {
	cancel context.CancelFunc
	fitted chan struct{} // closed when it takes no more memory
	done   chan struct{} // closed when span and err are set
	span   *span
	err    error
}

// beginSpan starts on the span of a superbatch that begins with a step; one at a time.
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

// stop ends the work, waits for its end and removes what it left.
func (a *spanAhead) stop() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
	a.span.close()
}
