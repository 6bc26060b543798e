package engine

import (
	"context"

	"gdb/internal/bug"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/vector"
)

// partBatches is how many batches of a part wait to be taken.
const partBatches = 4

// rows runs the plan and hands on its rows, in the order of the first nodes, or of the rows before.
func (pl *plan) rows(ctx context.Context, env *vector.Env, yield func(*eval.Scope) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := len(pl.parts())
	parts := make([]chan *batch, n)
	for i := range parts {
		parts[i] = make(chan *batch, partBatches)
	}
	failed := make(chan error, 1)
	go func() {
		defer bug.Catch()
		failed <- pl.run(ctx, env, pl.src.Threads(), func() sink {
			return pl.sinks(env, &sender{ctx, parts})
		})
	}()
	if err := pl.receive(ctx, parts, failed, env, yield); err != nil {
		cancel()
		<-failed // the threads end first
		return err
	}
	return <-failed
}

// receive hands on the batches of all parts, until the threads fail.
func (pl *plan) receive(ctx context.Context, parts []chan *batch, failed chan error,
	env *vector.Env, yield func(*eval.Scope) error) error {
	for _, part := range parts {
		for more := true; more; {
			select {
			case b, ok := <-part:
				if more = ok; ok {
					if err := pl.hand(b, env, yield); err != nil {
						return err
					}
				}
			case err := <-failed:
				failed <- err
				if err != nil {
					return err
				}
				for b := range part { // all parts are closed
					if err := pl.hand(b, env, yield); err != nil {
						return err
					}
				}
				more = false
			}
		}
	}
	return ctx.Err()
}

// hand hands on rows, as often as they count.
func (pl *plan) hand(b *batch, env *vector.Env, yield func(*eval.Scope) error) error {
	for i := range b.n {
		env.Rows.Lock()
		s := b.Scope(i)
		env.Rows.Unlock()
		for range b.times[i] {
			if err := pl.yield(s, env, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// yield hands on a row. What follows reads as rows are computed: by one at a time.
func (pl *plan) yield(s *eval.Scope, env *vector.Env, yield func(*eval.Scope) error) error {
	env.Rows.Lock()
	defer env.Rows.Unlock()
	return yield(s)
}

// sender sends copies of batches to the channels of their parts.
type sender struct {
	ctx   context.Context
	parts []chan *batch
}

func (s *sender) take(part int, b *batch) error {
	c := b.empty()
	for i := range b.n {
		c.push(b, i)
	}
	select {
	case s.parts[part] <- c:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *sender) end(part int) error {
	close(s.parts[part])
	return nil
}
