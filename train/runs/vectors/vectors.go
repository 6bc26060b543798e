// Package vectors reads what a run of link prediction has learned of nodes and relations from its
// checkpoint, in blocks of rows, or from the files of its partitions, so that vectors may be larger
// than memory. It finds the nodes that are nearest to one, scores edges, and completes edges of
// which one end is known: by exact scans, with the kernels that training scores with.
package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/link/decoder"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"
)

// blockBytes is how much of the vectors is read at a time, and blockRowsMost how many rows: their
// scores take as many floats.
const (
	blockBytes    = 4 << 20
	blockRowsMost = 8192
)

// Vectors are those of the best evaluation of a run. It is for one goroutine.
type Vectors struct {
	Run      string
	Settings setting.Link
	// Epoch is that of the best evaluation, or of the last one.
	Epoch int
	// Note is for the user; "" for none.
	Note string

	store  *layout.Store
	dev    blockdev.Device
	types  []string // names of relations
	nodes  int
	state  *runs.StateFile
	table  table // of the nodes; nil until it is open
	scorer rank.Scorer
	budget *mem.Budget
	held   int64
	block  []float32 // in which a flat table is read
	scores []float32
}

// position is what the checkpoint of a run says of its vectors. Records say in which files they are
// if they are on disk by partition.
type position struct {
	HasBest    bool   `json:"has_best"`
	BestEpoch  int    `json:"best_epoch"`
	Epoch      int    `json:"epoch"`
	Record     []byte `json:"record"`
	BestRecord []byte `json:"best_record"`
}

// record is that of the best evaluation, or of the last vectors if there was none.
func (p *position) record() []byte {
	if p.BestRecord != nil {
		return p.BestRecord
	}
	return p.Record
}

// Open opens the vectors of a run. Those of a checkpoint are read once, to check them; those on
// disk by partition are checked as partitions are read, through dev. budget counts the vectors of
// relations, and a block of rows or a partition; workers compute.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	budget *mem.Budget, workers int) (*Vectors, error) {
	dir := runs.Open(store, run)
	f, err := dir.ReadLink()
	if err != nil {
		return nil, err
	}
	var v *Vectors
	_, note, err := dir.Whole(func(checkpoint string) error {
		v = &Vectors{Run: run, Settings: *f.Link, types: store.Meta().EdgeTypes,
			nodes: int(store.Meta().Nodes), budget: budget, store: store, dev: dev}
		return v.openCheckpoint(ctx, dir, checkpoint, workers)
	})
	if err != nil {
		return nil, err
	}
	v.Note = note
	return v, nil
}

// openCheckpoint opens the vectors of a checkpoint.
func (v *Vectors) openCheckpoint(ctx context.Context, dir runs.Dir, checkpoint string,
	workers int) (err error) {
	var pos position
	if v.state, err = dir.OpenState(checkpoint, &pos); err != nil {
		return err
	}
	v.Epoch = pos.BestEpoch
	entities, relations := runs.BestEntitiesName, runs.BestRelationsName
	if !pos.HasBest {
		if v.Settings.Encodes() {
			return errors.Join(runs.NoVectorsYet(v.Run), v.state.Close())
		}
		entities, relations, v.Epoch = runs.EntitiesName, runs.RelationsName, pos.Epoch
	}
	if err = v.open(ctx, relations, workers); err == nil {
		if v.Settings.ScoredOnDisk() {
			v.table, err = openParts(v.store, v.dev, dir, &v.Settings, pos.record(), v.budget)
		} else {
			v.table, err = newFlat(ctx, v.state, entities, v.nodes, v.block, v.Dim())
		}
	}
	if err != nil {
		return errors.Join(err, v.Close())
	}
	return nil
}

// open takes the memory, and makes the forms of relations.
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
	if learned == 0 {
		return nil
	}
	if err := v.state.Check(ctx, relations, forms*learned, v.block); err != nil {
		return err
	}
	all := make([]float32, forms*learned)
	if err := v.state.Read(relations, 0, all); err != nil {
		return err
	}
	for i := range forms {
		dec.Form(v.scorer.Forms[i*width:][:width], all[i*learned:][:learned])
	}
	return nil
}

// About returns the run's settings as text, and a note for the user or "".
func (v *Vectors) About() (settings, note string) { return v.Settings.Text(), v.Note }

// Close closes the files, and gives the memory back.
func (v *Vectors) Close() (err error) {
	v.budget.Release(v.held)
	v.held = 0
	if v.table != nil {
		err = v.table.Close()
	}
	return errors.Join(err, v.state.Close())
}

// Dim is the width of the vectors, and Nodes how many there are.
func (v *Vectors) Dim() int { return v.Settings.Dim }

// Nodes is the number of nodes.
func (v *Vectors) Nodes() int { return v.nodes }

// Row reads the vector of a node.
func (v *Vectors) Row(ctx context.Context, node kv.NodeID) ([]float32, error) {
	row := make([]float32, v.Dim())
	return row, v.table.Row(ctx, node, row)
}

// Each calls fn with the vectors of all nodes, a block of nodes that follow one another at a time.
// Rows are valid during the call.
func (v *Vectors) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	return v.table.Each(ctx, fn)
}

// Relation is the number of a relation by its name.
func (v *Vectors) Relation(name string) (uint32, bool) {
	i := slices.Index(v.types, name)
	return uint32(max(i, 0)), i >= 0
}

// Score is the score of an edge.
func (v *Vectors) Score(ctx context.Context, e triples.Triple) (float32, error) {
	head, err := v.Row(ctx, kv.NodeID(e.Head))
	if err != nil {
		return 0, err
	}
	tail, err := v.Row(ctx, kv.NodeID(e.Tail))
	if err != nil {
		return 0, err
	}
	query := make([]float32, v.Dim())
	v.scorer.Query(query, head, triples.Query{Entity: e.Head, Relation: e.Relation})
	return v.scorer.Decoder.Measure().Pair(query, tail), nil
}

// Complete returns the n best answers to a query but for those in skip, which ascends.
func (v *Vectors) Complete(ctx context.Context, q triples.Query, n int,
	skip []uint32) ([]triples.Answer, error) {
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
	skip []uint32, change func(score float32, row []float32) float32) ([]triples.Answer, error) {
	best, dim := rank.NewBest(n), v.Dim()
	x := decoder.Matrices{Pool: v.scorer.Pool, Measure: measure, D: dim}
	err := v.table.Scan(ctx, func(rows []float32, node func(row int) uint32) error {
		for lo, count := 0, len(rows)/dim; lo < count; lo += len(v.scores) {
			scores := v.scores[:min(len(v.scores), count-lo)]
			some := rows[lo*dim:][:len(scores)*dim]
			x.Scores(scores, query, some, 1, len(scores))
			if change != nil {
				v.scorer.Pool.Span(len(scores), 256, func(from, to int) {
					for i := from; i < to; i++ {
						scores[i] = change(scores[i], some[i*dim:][:dim])
					}
				})
			}
			best.Block(scores, func(i int) uint32 { return node(lo + i) }, skip)
		}
		return nil
	})
	return best.Answers(), err
}
