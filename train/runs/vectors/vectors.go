// Package vectors reads what a run of link prediction has learned of nodes and relations from its
// checkpoint, in blocks of rows, so that vectors may be larger than memory. It finds the nodes that
// are nearest to one, scores edges, and completes edges of which one end is known: by exact scans,
// with the kernels that training scores with.
package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/program"
	"gdb/internal/trace"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/kernel"
	"gdb/train/link/decoder"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// blockBytes is how much of the vectors is read at a time, and blockRowsMost how many rows: their
// scores take as many floats.
const (
	blockBytes    = 4 << 20
	blockRowsMost = 8192
)

// rows are the vectors of all nodes, wherever they are kept.
type rows interface {
	// Check reads all of an array of so many values once, in pieces of buf, and compares checksums.
	Check(ctx context.Context, name string, values int, buf []float32) error
	// Read fills to with values of an array, from value at on.
	Read(name string, at int, to []float32) error
	Close() error
}

// Query and Edge are what is asked about, by numbers of nodes and relations.
type (
	Query = triples.Query
	Edge  = triples.Triple
)

// Vectors are those of the best evaluation of a run. It is for one goroutine.
type Vectors struct {
	Run      string
	Settings runs.LinkSettings
	// Epoch is that of the best evaluation, or of the last one.
	Epoch int
	// Note is for the user; "" for none.
	Note string

	types  []string // names of relations
	nodes  int
	rows   rows
	name   string // of the array of the nodes' vectors
	scorer rank.Scorer
	budget *mem.Budget
	held   int64
	block  []float32
	scores []float32
}

// Open opens the vectors of a run, and checks them: it reads them once. budget counts the vectors
// of relations and a block of rows; workers compute.
func Open(ctx context.Context, store *layout.Store, run string, budget *mem.Budget,
	workers int) (*Vectors, error) {
	dir := runs.Open(store, run)
	f, err := dir.ReadLink()
	if err != nil {
		return nil, err
	}
	if f.Link.OnDisk() {
		return nil, fmt.Errorf("run %s keeps its vectors by partition, which are not read here "+
			"yet; %s predict and %s eval do", run, program.Name, program.Name)
	}
	var pos struct {
		HasBest   bool `json:"has_best"`
		BestEpoch int  `json:"best_epoch"`
		Epoch     int  `json:"epoch"`
	}
	state, note, err := dir.OpenState(&pos)
	if err != nil {
		return nil, err
	}
	v := &Vectors{Run: run, Settings: *f.Link, Epoch: pos.BestEpoch, Note: note,
		types: store.Meta().EdgeTypes, nodes: int(store.Meta().Nodes), rows: state,
		name: runs.BestEntitiesName, budget: budget}
	relations := runs.BestRelationsName
	if !pos.HasBest {
		if f.Link.Encodes() {
			return nil, errors.Join(runs.NoVectorsYet(run), state.Close())
		}
		v.name, relations, v.Epoch = runs.EntitiesName, runs.RelationsName, pos.Epoch
	}
	if err := v.open(ctx, relations, workers); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// open takes the memory, checks what will be read, and makes the forms of relations.
func (v *Vectors) open(ctx context.Context, relations string, workers int) error {
	c := &v.Settings
	dec, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm})
	if err != nil {
		return err
	}
	count := max(1, len(v.types))
	forms := count
	if c.Reciprocal {
		forms *= 2
	}
	width, learned := dec.FormDim(c.Dim), dec.RelationDim(c.Dim)
	blockRows := min(max(1, blockBytes/4/c.Dim), blockRowsMost, max(1, v.nodes))
	bytes := 4 * int64(forms*(width+learned)+blockRows*(c.Dim+1)+2*c.Dim)
	if err := v.budget.Reserve("vectors of a run", mem.HeapCost(bytes)); err != nil {
		return fmt.Errorf("train: run %s: %w", v.Run, err)
	}
	v.held = mem.HeapCost(bytes)
	v.block, v.scores = make([]float32, blockRows*c.Dim), make([]float32, blockRows)
	v.scorer = rank.Scorer{Pool: kernel.NewPool(workers), Decoder: dec, Dim: c.Dim, Count: v.nodes,
		Forms: make([]float32, forms*width), Relations: count, Reciprocal: c.Reciprocal}
	if err := v.rows.Check(ctx, v.name, v.nodes*c.Dim, v.block); err != nil {
		return err
	}
	trace.From(ctx).Read(1, 4*uint64(v.nodes*c.Dim))
	if learned == 0 {
		return nil
	}
	if err := v.rows.Check(ctx, relations, forms*learned, v.block); err != nil {
		return err
	}
	all := make([]float32, forms*learned)
	if err := v.rows.Read(relations, 0, all); err != nil {
		return err
	}
	for i := range forms {
		dec.Form(v.scorer.Forms[i*width:][:width], all[i*learned:][:learned])
	}
	return nil
}

// Close closes the file, and gives the memory back.
func (v *Vectors) Close() error {
	v.budget.Release(v.held)
	v.held = 0
	return v.rows.Close()
}

// Dim is the width of the vectors, and Nodes how many there are.
func (v *Vectors) Dim() int { return v.Settings.Dim }

// Nodes is the number of nodes.
func (v *Vectors) Nodes() int { return v.nodes }

// Row reads the vector of a node.
func (v *Vectors) Row(ctx context.Context, node kv.NodeID) ([]float32, error) {
	row := make([]float32, v.Dim())
	trace.From(ctx).Read(1, 4*uint64(v.Dim()))
	return row, v.rows.Read(v.name, int(node)*v.Dim(), row)
}

// Each calls fn with the vectors of all nodes, a block of nodes that follow one another at a time.
// Rows are valid during the call.
func (v *Vectors) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	dim := v.Dim()
	most := len(v.block) / dim
	for first := 0; first < v.nodes; first += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := v.block[:min(most, v.nodes-first)*dim]
		if err := v.rows.Read(v.name, first*dim, block); err != nil {
			return err
		}
		trace.From(ctx).Read(1, 4*uint64(len(block)))
		if err := fn(first, block); err != nil {
			return err
		}
	}
	return nil
}

// Relation is the number of a relation by its name.
func (v *Vectors) Relation(name string) (uint32, bool) {
	i := slices.Index(v.types, name)
	return uint32(max(i, 0)), i >= 0
}

// Score is the score of an edge.
func (v *Vectors) Score(ctx context.Context, e Edge) (float32, error) {
	head, err := v.Row(ctx, kv.NodeID(e.Head))
	if err != nil {
		return 0, err
	}
	tail, err := v.Row(ctx, kv.NodeID(e.Tail))
	if err != nil {
		return 0, err
	}
	query := make([]float32, v.Dim())
	v.scorer.Query(query, head, Query{Entity: e.Head, Relation: e.Relation})
	return v.scorer.Decoder.Measure().Pair(query, tail), nil
}

// Complete returns the n best answers to a query but for those in skip, which ascends.
func (v *Vectors) Complete(ctx context.Context, q Query, n int,
	skip []uint32) ([]rank.Answer, error) {
	known, err := v.Row(ctx, kv.NodeID(q.Entity))
	if err != nil {
		return nil, err
	}
	query := make([]float32, v.Dim())
	v.scorer.Query(query, known, q)
	return v.scan(ctx, v.scorer.Decoder.Measure(), query, n, skip, nil)
}

// scan compares a row with all nodes. change, if there is one, changes the score of a row.
func (v *Vectors) scan(ctx context.Context, measure decoder.Measure, query []float32, n int,
	skip []uint32, change func(score float32, row []float32) float32) ([]rank.Answer, error) {
	best, dim := rank.NewBest(n), v.Dim()
	x := decoder.Matrices{Pool: v.scorer.Pool, Measure: measure, D: dim}
	err := v.Each(ctx, func(first int, rows []float32) error {
		count := len(rows) / dim
		scores := v.scores[:count]
		x.Scores(scores, query, rows, 1, count)
		if change != nil {
			v.scorer.Pool.Span(count, 256, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					scores[i] = change(scores[i], rows[i*dim:][:dim])
				}
			})
		}
		best.Block(first, scores, skip)
		return nil
	})
	return best.Answers(), err
}
