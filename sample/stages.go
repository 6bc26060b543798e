package sample

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/bug"
)

// StageGroup is the goroutines of a pipeline. The first error of one stops all.
type StageGroup struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// NewStageGroup returns a group without goroutines, which stops when ctx is cancelled.
func NewStageGroup(ctx context.Context) *StageGroup {
	g := &StageGroup{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Start starts a stage.
func (g *StageGroup) Start(work func() error) {
	g.wg.Go(func() {
		defer bug.Catch()
		if err := work(); err != nil {
			g.cancel(err)
		}
	})
}

// Context returns a context that is cancelled when the stages must stop.
func (g *StageGroup) Context() context.Context { return g.ctx }

// Done returns a channel that is closed when the stages must stop.
func (g *StageGroup) Done() <-chan struct{} { return g.ctx.Done() }

// Err returns why the stages must stop, or nil while they need not.
func (g *StageGroup) Err() error { return context.Cause(g.ctx) }

// Stop makes the stages stop, for this reason if there was none before, and waits for them.
func (g *StageGroup) Stop(why error) {
	g.cancel(why)
	g.wg.Wait()
}

// Receive receives from c, and adds the nanoseconds that it waits to wait. It returns false if the
// stages stop first.
func Receive[T any](g *StageGroup, c <-chan T, wait *atomic.Int64) (v T, ok bool) {
	select {
	case v = <-c:
		return v, true
	default:
	}
	begun := time.Now()
	defer func() { wait.Add(int64(time.Since(begun))) }()
	select {
	case v = <-c:
		return v, true
	case <-g.ctx.Done():
		return v, false
	}
}
