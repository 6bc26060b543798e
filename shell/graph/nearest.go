package graph

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/triples"
)

// Nearest compares vectors of nodes, by an index if there is one. Any goroutine may use it.
type Nearest interface {
	// Closeness returns the way to compare vectors that fits.
	Closeness() string
	// Index returns what of an index is searched for n answers; "" if there is none that fits, and
	// then why one that exists is not used.
	Index(by string, n int) (what, why string)
	// Stale says why the index does not fit the vectors any more; "" if it does. It reads the files
	// of a run.
	Stale() string
	// Nearest answers by the index, which Index must have named, and Exact by comparing with the
	// vectors of all nodes. The closest come first.
	Nearest(ctx context.Context, ask triples.Nearest) ([]triples.Answer, error)
	Exact(ctx context.Context, ask triples.Nearest) ([]triples.Answer, error)
	Close() error
}

// OpenNearest opens vectors of nodes, with their index. budget counts their memory. It is set by
// the program, so that programs without NEAREST link no kernels.
type OpenNearest func(ctx context.Context, store *layout.Store, dev blockdev.Device,
	of triples.VectorsOf, budget *mem.Budget) (Nearest, error)

// NearestBy turns a function that opens one type of Nearest into an OpenNearest.
func NearestBy[V Nearest](open func(context.Context, *layout.Store, blockdev.Device,
	triples.VectorsOf, *mem.Budget) (V, error)) OpenNearest {
	return func(ctx context.Context, store *layout.Store, dev blockdev.Device,
		of triples.VectorsOf, budget *mem.Budget) (Nearest, error) {
		v, err := open(ctx, store, dev, of, budget)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
}

// keptNearest are vectors that stay open for further statements, as long as their index fits.
type keptNearest struct {
	Nearest
	users int
	old   bool // closed by the last user
}

// Vectors calls use with vectors of nodes. Those with an index that fits stay open.
func (g *Graph) Vectors(ctx context.Context, of triples.VectorsOf,
	use func(v Nearest) error) (err error) {
	v, err := g.takeNearest(ctx, of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.giveNearest(v)) }()
	return use(v.Nearest)
}

// takeNearest returns vectors that are open, or opens them.
func (g *Graph) takeNearest(ctx context.Context, of triples.VectorsOf) (*keptNearest, error) {
	g.nearest.Lock()
	defer g.nearest.Unlock()
	if v := g.nearest.open[of]; v != nil {
		v.users++
		if v.Stale() == "" {
			return v, nil
		}
		delete(g.nearest.open, of)
		v.old = true
		if v.users--; v.users == 0 {
			if err := v.Close(); err != nil {
				return nil, err
			}
		}
	}
	opened, err := g.OpenNearest(ctx, g.Store, g.Dev, of, g.Budget)
	if err != nil {
		return nil, err
	}
	v := &keptNearest{Nearest: opened, users: 1}
	what, _ := v.Index(v.Closeness(), 1)
	if v.old = what == ""; !v.old {
		g.nearest.open[of] = v
	}
	return v, nil
}

// giveNearest gives back what takeNearest returned.
func (g *Graph) giveNearest(v *keptNearest) error {
	g.nearest.Lock()
	defer g.nearest.Unlock()
	if v.users--; v.users == 0 && v.old {
		return v.Close()
	}
	return nil
}

// closeNearest closes the vectors that stayed open.
func (g *Graph) closeNearest() (err error) {
	g.nearest.Lock()
	defer g.nearest.Unlock()
	for _, v := range g.nearest.open {
		err = errors.Join(err, v.Close())
	}
	clear(g.nearest.open)
	return err
}
