package engine

import (
	"context"

	"gdb/internal/bug"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/vector"
)

// partBatches is how many batches of a part wait to be taken.
const partBatches = 4

// rows runs the plan and hands on its rows, or what a projection makes of them, in the order of the
// first nodes, or of the rows before.
func (pl *plan) rows(ctx context.Context, env *vector.Env, of *projection, out plain.Out) error {
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
			return pl.sinks(env, &sender{ctx, parts, env, of})
		})
	}()
	hand := func(b *batch) error { return b.hand(env, out) }
	if of != nil {
		hand = func(b *batch) error { return of.hand(b, env, out) }
	}
	if err := receive(ctx, parts, failed, hand); err != nil {
		cancel()
		<-failed // the threads end first
		return err
	}
	return <-failed
}

// receive hands on the batches of all parts, until the threads fail.
func receive(ctx context.Context, parts []chan *batch, failed chan error,
	hand func(*batch) error) error {
	for _, part := range parts {
		for more := true; more; {
			select {
			case b, ok := <-part:
				if more = ok; ok {
					if err := hand(b); err != nil {
						return err
					}
				}
			case err := <-failed:
				failed <- err
				if err != nil {
					return err
				}
				for b := range part { // all parts are closed
					if err := hand(b); err != nil {
						return err
					}
				}
				more = false
			}
		}
	}
	return ctx.Err()
}

// hand hands on rows, as often as they count. What follows reads as rows are computed: by one at a
// time.
func (b *batch) hand(env *vector.Env, out plain.Out) error {
	for i := range b.n {
		env.Rows.Lock()
		s := b.Scope(i)
		env.Rows.Unlock()
		for range b.times[i] {
			if err := locked(env, func() error { return out.Row(s) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// hand hands on columns.
func (p *projection) hand(b *batch, env *vector.Env, out plain.Out) error {
	for i := range b.n {
		s := p.scope(env, b, i)
		vals, keys := at(b.cols, i), at(b.keys, i)
		for range b.times[i] {
			err := locked(env, func() error { return out.Values(s, vals, keys) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// locked calls fn while no other computes by rows.
func locked(env *vector.Env, fn func() error) error {
	env.Rows.Lock()
	defer env.Rows.Unlock()
	return fn()
}

// sender sends copies of batches to the channels of their parts, with what a projection makes of
// them if it is not nil.
type sender struct {
	ctx   context.Context
	parts []chan *batch
	env   *vector.Env
	of    *projection
}

func (s *sender) take(part int, b *batch) error {
	c := b.empty()
	for i := range b.n {
		c.push(b, i)
	}
	if s.of != nil {
		var err error
		if c.cols, err = compute(s.of.items, s.env, c); err != nil {
			return err
		}
		if c.keys, err = compute(s.of.keys, s.env, c); err != nil {
			return err
		}
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
