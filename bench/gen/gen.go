// Package gen makes graphs for measuring: R-MAT, block models and a shop's tables from nothing, and
// expansions of real graphs. They are directories of arrays, or of tables, that ingest takes.
package gen

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/internal/tables"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options describe a graph to generate. Memory is bounded whatever the size: 1 bit per node
// (R-MAT, to draw splits from nodes with in-edges), 8 bytes per member of a split, and buffers.
type Options struct {
	Kind      string // rmat, sbm or Typed
	Nodes     uint64 // a power of two for rmat
	Edges     uint64 // sbm: to a few percent, and at least one a node
	Dim       int    // feature values per node; 0 for none
	Classes   int
	TrainFrac float64 // of all nodes; val and test get half of it each
	Seed      uint64
	Out       string
	FS        vfs.FS
	// Progress gets rows done and in all; nil for none.
	Progress func(phase string, done, total int64, unit string)
}

// Purposes of the generator's random numbers, the first part of each key.
const (
	genEdge = iota + 1
	genScramble
	genFeature
	genLabel
	genSplit
	genDegree
	genMean
)

// genChunk is how many rows are made and written at once.
const genChunk = 1 << 16

// Kinds are the graphs that Make makes.
var Kinds = []string{"rmat", "sbm", Typed}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	switch {
	case !slices.Contains(Kinds, o.Kind):
		return fmt.Errorf("bench: gen %q: want %s or kron", o.Kind, strings.Join(Kinds, ", "))
	case o.Nodes < 2 || o.Nodes > 1<<32:
		return fmt.Errorf("bench: gen: %d nodes: want 2 to 2^32", o.Nodes)
	case o.Kind == "rmat" && o.Nodes&(o.Nodes-1) != 0:
		return fmt.Errorf("bench: gen rmat: %d nodes: want a power of two (--scale)", o.Nodes)
	case o.Edges == 0:
		return errors.New("bench: gen: no --edges")
	case o.Kind == "sbm" && o.Edges < o.Nodes:
		return fmt.Errorf("bench: gen sbm: %d edges: want at least one a node, %d", o.Edges,
			o.Nodes)
	case o.Dim < 0:
		return fmt.Errorf("bench: gen: --dim %d is negative", o.Dim)
	case o.Classes < 1 || uint64(o.Classes) > o.Nodes:
		return fmt.Errorf("bench: gen: %d classes: want 1 to the number of nodes", o.Classes)
	case !(o.TrainFrac >= 0 && o.TrainFrac <= 0.5):
		return fmt.Errorf("bench: gen: --train-frac %g: want 0 to 0.5", o.TrainFrac)
	case o.Out == "":
		return errors.New("bench: gen: no --out DIR")
	}
	return nil
}

// Made is the size of a graph that was written.
type Made struct{ Nodes, Edges uint64 }

// Make writes an array directory: edges.npy uint32 (E,2), which is half of what int64 takes,
// features.npy float32 (N,dim), labels.npy int64 and {train,val,test}_idx.npy; of a typed graph it
// writes tables as Parquet. The same options give the same bytes.
func Make(ctx context.Context, o Options) (Made, error) {
	if err := o.Validate(); err != nil {
		return Made{}, err
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	g := &generator{Options: o, ctx: ctx}
	g.scramble = rng.NewPermutation(o.Nodes, rng.Key(o.Seed, genScramble))
	steps := []func() error{g.rmatEdges, g.features, g.labels, g.splits}
	switch o.Kind {
	case "sbm":
		g.means = classMeans(o)
		steps[0] = g.sbmEdges
	case Typed:
		s, err := newShop(g)
		if err != nil {
			return Made{}, fmt.Errorf("bench: gen %w", err)
		}
		steps = []func() error{s.tables}
	}
	err := wholeDir(o.FS, o.Out, func(dir string) error {
		g.Out = dir
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Made{}, fmt.Errorf("bench: gen: %w", err)
	}
	return Made{Nodes: o.Nodes, Edges: g.edges}, nil
}

// partSuffix ends the name of a directory that is not whole yet.
const partSuffix = ".gdb-part"

// wholeDir makes a directory by write, which writes it under another name: it is there once it is
// whole, and nothing is left of what fails. What a killed process left is written anew.
func wholeDir(fs vfs.FS, out string, write func(dir string) error) (err error) {
	out = filepath.Clean(out)
	names, err := fs.List(out)
	switch {
	case err == nil && len(names) > 0:
		return fmt.Errorf("%s is there, and not empty: give another --out, or remove it", out)
	case err == nil:
		err = fs.Remove(out)
	case errors.Is(err, iofs.ErrNotExist):
		err = nil
	}
	part := out + partSuffix
	if err = errors.Join(err, fs.RemoveAll(part)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fs.RemoveAll(part))
		}
	}()
	if err := fs.MkdirAll(part, 0o755); err != nil {
		return err
	}
	if err := write(part); err != nil {
		return err
	}
	return fs.Rename(part, out)
}

type generator struct {
	Options
	ctx      context.Context
	scramble rng.Permutation
	edges    uint64      // as many as were written
	hasIn    []uint64    // bit per node, rmat only
	means    [][]float32 // per class, sbm only
}

// array writes rows rows of cols values in chunks: fill gets the first row of a chunk and a buffer
// of whole rows.
func array[T mem.Scalar](g *generator, name, descr string, shape []uint64,
	fill func(first uint64, out []T)) (err error) {
	w, err := tables.CreateArray(g.FS, g.FS.PathJoin(g.Out, name+".npy"), descr, shape...)
	if err != nil {
		return err
	}
	rows, cols := shape[0], uint64(1)
	if len(shape) > 1 {
		cols = shape[1]
	}
	buf := make([]T, min(rows, genChunk)*cols)
	for first := uint64(0); first < rows; first += genChunk {
		n := min(rows-first, genChunk)
		fill(first, buf[:n*cols])
		if _, err := w.Write(mem.BytesOf(buf[:n*cols])); err != nil {
			return errors.Join(err, w.Close())
		}
		if err := g.ctx.Err(); err != nil {
			return errors.Join(err, w.Close())
		}
		if g.Progress != nil {
			g.Progress(name, int64(first+n), int64(rows), "rows")
		}
	}
	return w.Close()
}

// rmatEdges draws the edges of sampletest.RMATEdge, then renames the nodes by a random permutation.
func (g *generator) rmatEdges() error {
	g.hasIn, g.edges = make([]uint64, (g.Nodes+63)/64), g.Edges
	scale := 0
	for 1<<scale < g.Nodes {
		scale++
	}
	key := rng.Key(g.Seed, genEdge)
	return array(g, "edges", "<u4", []uint64{g.Edges, 2}, func(first uint64, out []uint32) {
		for i := 0; i < len(out); i += 2 {
			s := rng.NewStream(rng.Sub(key, first+uint64(i/2)))
			src, dst := sampletest.RMATEdge(scale, &s)
			u, v := g.scramble.At(uint64(src)), g.scramble.At(uint64(dst))
			g.hasIn[v/64] |= 1 << (v % 64)
			out[i], out[i+1] = uint32(u), uint32(v)
		}
	})
}

// Parameters of the block model: share of in-edges from the own class, distance of class means in
// standard deviations, spread of the in-degrees. With these an MLP on the features alone stays
// well below a GNN, which averages the noise over neighbors.
const (
	sbmOwnClass   = 0.42
	sbmMeanScale  = 0.22
	sbmDegreeSpan = 1.0
)

// class of a node: the nodes in scrambled order are cut into equal runs, so that a random member
// of a class is a random position of its run, without a list.
func (g *generator) class(v uint64) uint64 {
	if g.Kind == "rmat" {
		s := rng.NewStream(rng.Key(g.Seed, genLabel, v))
		return s.Below(uint64(g.Classes))
	}
	return g.scramble.Inverse(v) * uint64(g.Classes) / g.Nodes
}

func (g *generator) member(class uint64, s *rng.Stream) uint64 {
	c := uint64(g.Classes)
	lo, hi := (class*g.Nodes+c-1)/c, ((class+1)*g.Nodes+c-1)/c
	return g.scramble.At(lo + s.Below(hi-lo))
}

// sbmDegree returns the in-degree of a node: lognormal with the mean that gives Edges in all.
func (g *generator) sbmDegree(v uint64) uint64 {
	r := rand.New(rand.NewPCG(rng.Key(g.Seed, genDegree), v))
	mean := float64(g.Edges) / float64(g.Nodes)
	spread := sbmDegreeSpan*r.NormFloat64() - sbmDegreeSpan*sbmDegreeSpan/2
	return uint64(max(1, mean*math.Exp(spread)))
}

func (g *generator) sbmEdges() error {
	total := uint64(0)
	for v := range g.Nodes {
		total += g.sbmDegree(v)
	}
	g.edges = total
	v, left := uint64(0), g.sbmDegree(0)
	key := rng.Key(g.Seed, genEdge)
	return array(g, "edges", "<u4", []uint64{total, 2}, func(first uint64, out []uint32) {
		for i := 0; i < len(out); i += 2 {
			for left == 0 {
				v++
				left = g.sbmDegree(v)
			}
			left--
			s := rng.NewStream(rng.Sub(key, first+uint64(i/2)))
			src := s.Below(g.Nodes)
			if s.Float64() < sbmOwnClass {
				src = g.member(g.class(v), &s)
			}
			out[i], out[i+1] = uint32(src), uint32(v)
		}
	})
}

func classMeans(o Options) [][]float32 {
	means := make([][]float32, o.Classes)
	for c := range means {
		s := rng.NewStream(rng.Key(o.Seed, genMean, uint64(c)))
		means[c] = make([]float32, o.Dim)
		for j := range means[c] {
			means[c][j] = sbmMeanScale * float32(2*int(s.Uint64()>>63)-1)
		}
	}
	return means
}

// features are standard normal noise, on top of the class mean for the block model.
func (g *generator) features() error {
	if g.Dim == 0 {
		return nil
	}
	key := rng.Key(g.Seed, genFeature)
	shape := []uint64{g.Nodes, uint64(g.Dim)}
	return array(g, "features", "<f4", shape, func(first uint64, out []float32) {
		r := rand.New(rand.NewPCG(key, first))
		for i := range out {
			out[i] = float32(r.NormFloat64())
		}
		for i := 0; g.means != nil && i < len(out); i += g.Dim {
			for j, m := range g.means[g.class(first+uint64(i/g.Dim))] {
				out[i+j] += m
			}
		}
	})
}

func (g *generator) labels() error {
	return array(g, "labels", "<i8", []uint64{g.Nodes}, func(first uint64, out []int64) {
		for i := range out {
			out[i] = int64(g.class(first + uint64(i)))
		}
	})
}

// splits takes disjoint random nodes, for rmat only such that have in-edges: about half of the
// nodes of these graphs have none.
func (g *generator) splits() error {
	order := rng.NewPermutation(g.Nodes, rng.Key(g.Seed, genSplit))
	next := uint64(0)
	for _, s := range []struct {
		name string
		frac float64
	}{{"train_idx", g.TrainFrac}, {"val_idx", g.TrainFrac / 2}, {"test_idx", g.TrainFrac / 2}} {
		want := int(math.Round(s.frac * float64(g.Nodes)))
		ids := make([]int64, 0, want)
		for ; len(ids) < want && next < g.Nodes; next++ {
			v := order.At(next)
			if g.hasIn == nil || g.hasIn[v/64]&(1<<(v%64)) != 0 {
				ids = append(ids, int64(v))
			}
		}
		slices.Sort(ids)
		if len(ids) == 0 {
			continue
		}
		err := array(g, s.name, "<i8", []uint64{uint64(len(ids))}, func(first uint64, out []int64) {
			copy(out, ids[first:])
		})
		if err != nil {
			return err
		}
	}
	return nil
}
