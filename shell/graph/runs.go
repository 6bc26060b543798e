package graph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/shell/words"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/RoaringBitmap/roaring/v2"
)

// ReadRun reads the settings of a run. It opens only the run's run.json.
func (g *Graph) ReadRun(name string) (run runs.File, err error) {
	names, err := g.runNames()
	if err != nil {
		return run, err
	}
	if !slices.Contains(names, name) {
		return run, fmt.Errorf("no run %s%s; RUNS lists them", words.Quoted(name), words.Near(name,
			names))
	}
	dir := runs.Open(g.Store, name)
	if run, err = dir.File(); err == nil && run.Link != nil {
		return run, fmt.Errorf("run %s predicts links: it has no batches of nodes", name)
	}
	if err == nil {
		err = checkBatches(dir, &run.Config)
	}
	if err != nil {
		return run, fmt.Errorf("run %s: %w", name, err)
	}
	if uuid := g.Meta().UUID.String(); run.Store != uuid {
		return run, fmt.Errorf("run %s was trained on store %s, this is %s", name, run.Store, uuid)
	}
	return run, nil
}

// checkBatches fails if no batches can be drawn with the settings of a run.
func checkBatches(dir runs.Dir, c *setting.Node) error {
	if c.Batch < 1 {
		return dir.Corrupt(runs.FileName, fmt.Sprintf("batches of %d", c.Batch))
	}
	if c.Hops() == 0 {
		return dir.Corrupt(runs.FileName, "no fanout")
	}
	if err := (sample.Config{Fanout: c.Fanout, LayerSize: c.LayerSize}).Validate(); err != nil {
		return dir.Corrupt(runs.FileName, err.Error())
	}
	return nil
}

// settingsText returns the settings of a run in one line.
func settingsText(c *setting.Node) string {
	return fmt.Sprintf("%s, %s, batch %d, seed %d", c.Model, c.Sampling(), c.Batch, c.Seed)
}

// runNames returns the names of the runs whose settings exist. It does not open the catalog.
func (g *Graph) runNames() (names []string, err error) {
	store := g.Store.FS()
	all, err := store.List(g.Store.Path("runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	for _, name := range all {
		if strings.HasPrefix(name, ".") {
			continue
		}
		if _, err := store.Stat(g.Store.Path("runs", name, "run.json")); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// RunName holds the name of a run and its settings in one line.
type RunName struct{ Name, Settings string }

// RunNames returns the runs of a store for completion. It leaves out runs that cannot be read; the
// statement that uses such a run says why.
func RunNames(st *layout.Store) (out []RunName) {
	e := &Graph{Store: st}
	names, err := e.runNames()
	if err != nil {
		return nil
	}
	for _, name := range names {
		one := RunName{Name: name}
		run, err := e.ReadRun(name)
		switch {
		case run.Link != nil:
			one.Settings = run.Link.Text()
		case err == nil:
			one.Settings = settingsText(&run.Config)
		}
		out = append(out, one)
	}
	return out
}

// Vectors answers from what a run has learned of nodes and relations. Only one goroutine may use
// it.
type Vectors interface {
	// About returns the run's settings as text, and a note for the user or "".
	About() (settings, note string)
	// Closeness returns the way to compare vectors that fits the run.
	Closeness() string
	// Nearest returns the n nodes whose vectors are closest to a node's, the closest first.
	Nearest(ctx context.Context, node layout.NodeID, by string, n int) ([]triples.Answer, error)
	// Score returns the score of an edge.
	Score(ctx context.Context, e triples.Triple) (float32, error)
	// Complete returns the n best answers to a query without those in skip, which ascends.
	Complete(ctx context.Context, q triples.Query, n int, skip []uint32) ([]triples.Answer, error)
	Close() error
}

// OpenVectors opens the vectors of a run of a store. budget counts their memory, and workers is the
// number of goroutines that compute. It is set by the program, so that programs without NEAREST and
// SCORE link no kernels.
type OpenVectors func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	budget *mem.Budget, workers int) (Vectors, error)

// VectorsBy turns a function that opens one type of Vectors into an OpenVectors.
func VectorsBy[V Vectors](open func(context.Context, *layout.Store, blockdev.Device, string,
	*mem.Budget, int) (V, error)) OpenVectors {
	return func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
		budget *mem.Budget, workers int) (Vectors, error) {
		v, err := open(ctx, store, dev, run, budget, workers)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
}

// Predict calls emit with what a run predicts of nodes, each once: text or a number, and how
// probable it is, by the run's temperature if calibrated asks for it, NaN where nothing says. It
// takes memory bytes, or what the run took for 0. It is set by the program, so that programs that
// do not predict link no kernels.
type Predict func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	calibrated bool, nodes []layout.NodeID, memory int64,
	emit func(v layout.NodeID, prediction any, probability float64) error) error

// Bits is a set of nodes as a roaring bitmap, counted in a budget. It takes at most an eighth of a
// byte for each node of the graph. The owner calls Free.
type Bits struct {
	*roaring.Bitmap
	budget *mem.Budget
	held   int64
}

// NewBits returns an empty set that is counted in budget.
func NewBits(budget *mem.Budget) *Bits {
	return &Bits{Bitmap: roaring.New(), budget: budget}
}

// Add adds nodes in any order.
func (s *Bits) Add(nodes []layout.NodeID) error {
	s.AddMany(numbers(nodes))
	return s.count()
}

// Union adds the nodes of o.
func (s *Bits) Union(o *Bits) error {
	s.Or(o.Bitmap)
	return s.count()
}

// count brings the reservation in the budget up to date.
func (s *Bits) count() error {
	n := int64(s.GetSizeInBytes())
	if n > s.held {
		if err := s.budget.Reserve("sets of nodes", n-s.held); err != nil {
			return err
		}
	} else {
		s.budget.Release(s.held - n)
	}
	s.held = n
	return nil
}

// Free empties the set and gives its memory back.
func (s *Bits) Free() {
	s.budget.Release(s.held)
	s.held, s.Bitmap = 0, roaring.New()
}

// Each calls fn with the nodes in ascending order, nodeBatch at a time, until it returns false.
func (s *Bits) Each(fn func(nodes []layout.NodeID) (bool, error)) error {
	buf := make([]layout.NodeID, NodeBatch)
	for it := s.ManyIterator(); ; {
		n := it.NextMany(numbers(buf))
		if n == 0 {
			return nil
		}
		if more, err := fn(buf[:n]); err != nil || !more {
			return err
		}
	}
}
