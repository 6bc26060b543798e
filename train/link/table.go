package link

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

// Table holds rows of vectors and the optimizer's state for each row. It may be used by
// one goroutine.
type Table struct {
	Rows, Dim int
	Values    []float32
	State     [][]float32 // in the order of runs.LinkState
	arenas    []*mem.Arena
	device    []backend.Tensor // the values and the state on a device; nil if they are not there
}

// newTable returns a table of zeros with a number of arrays of state.
func newTable(what string, rows, dim, state int, budget *mem.Budget) (*Table, error) {
	t := &Table{Rows: rows, Dim: dim}
	for i := range 1 + state {
		a, err := mem.NewArena(budget, what, 4*max(1, int64(rows)*int64(dim)))
		if err != nil {
			return nil, fmt.Errorf("train: %d rows of %d numbers: %w", rows, dim, err)
		}
		t.arenas = append(t.arenas, a)
		values := mem.View[float32](a.Bytes())[:rows*dim]
		if i == 0 {
			t.Values = values
		} else {
			t.State = append(t.State, values)
		}
	}
	return t, nil
}

// Close frees the memory.
func (t *Table) Close() (err error) {
	for _, a := range t.arenas {
		if e := a.Free(); err == nil {
			err = e
		}
	}
	return err
}

// row returns vector i.
func (t *Table) row(i uint32) []float32 { return t.Values[int(i)*t.Dim:][:t.Dim:t.Dim] }

// tensor returns the values as a backend has them.
func (t *Table) tensor(be backend.Backend) backend.Tensor {
	if t.device != nil {
		return t.device[0]
	}
	return be.Host(t.Values, t.Rows, t.Dim)
}

// there returns the values that a device has; none where it does not.
func (t *Table) there() backend.Tensor {
	if t.device == nil {
		return backend.Tensor{}
	}
	return t.device[0]
}

// states returns the state of the optimizer as a backend has it.
func (t *Table) states(be backend.Backend) (all []backend.Tensor) {
	if t.device != nil {
		return t.device[1:]
	}
	for _, x := range t.State {
		all = append(all, be.Host(x, t.Rows, t.Dim))
	}
	return all
}

// These are the constants of the optimizers, as their authors set them.
const (
	adamBeta1  = 0.9
	adamBeta2  = 0.999
	adamEps    = 1e-8
	adagradEps = 1e-10
)

// optimizer takes steps along gradients. Rows that a batch does not have, and their moments,
// stay as they are.
type optimizer struct {
	kind  string
	rate  float32
	steps int // taken, the current one included
	pool  *kernel.Pool
}

// rowsOnce is how many rows a worker changes at a time.
const rowsOnce = 128

// rows changes the rows at of a table by their gradients, which follow each other in g.
func (o *optimizer) rows(t *Table, at []uint32, g []float32) {
	o.pool.Span(len(at), rowsOnce, func(lo, hi int) {
		o.some(t, at[lo:hi], g[lo*t.Dim:hi*t.Dim])
	})
}

// onBackend changes the rows at of a table by their gradients g.
func (o *optimizer) onBackend(be backend.Backend, t *Table, g, at backend.Tensor) {
	values, states := t.tensor(be), t.states(be)
	if o.kind == "adam" {
		backend.AdamRows(be, values, backend.Moments{M: states[0], V: states[1]}, g, at, o.adam())
		return
	}
	backend.AdagradRows(be, values, states[0], g, at,
		backend.AdamStep{Rate: o.rate, Eps: adagradEps})
}

// adam returns the settings of a step of Adam.
func (o *optimizer) adam() kernel.AdamStep {
	return kernel.AdamStep{Step: o.steps, Rate: o.rate, Beta1: adamBeta1, Beta2: adamBeta2,
		Eps: adamEps}
}

// some does the work of rows on the caller's goroutine. g is undefined afterwards.
func (o *optimizer) some(t *Table, at []uint32, g []float32) {
	r := kernel.Rows{Cols: t.Dim, At: at, X: g, Stride: t.Dim}
	if o.kind == "adam" {
		r.Adam(nil, t.Values, t.State[0], t.State[1], o.adam())
		return
	}
	r.AdagradOnce(nil, t.Values, t.State[0], o.rate, adagradEps)
}

// sums returns a kernel that sums gradients of rows of a table and takes their Adagrad steps.
func (o *optimizer) sums(t *Table) kernel.AdagradRows {
	return kernel.AdagradRows{Dim: t.Dim, Weights: t.Values, Squares: t.State[0], Rate: o.rate,
		Eps: adagradEps}
}
