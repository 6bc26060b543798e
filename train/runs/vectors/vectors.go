// Package vectors reads what a run of link prediction has learned of nodes and relations: from its
// checkpoint, in blocks of rows, or from the files of its partitions, so that vectors may be larger
// than memory. It finds the nodes nearest to a node, scores edges, and completes edges of which one
// end is known, by exact scans, with the kernels that training scores with.
package vectors

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"
)

// blockBytes is how much of the vectors is read at a time.
const blockBytes = 4 << 20

// Vectors gives access to the vectors of a run's best evaluation. It may be used by one goroutine.
type Vectors struct {
	Run      string
	Settings setting.Link
	// Epoch is the epoch of the best evaluation, or the last one.
	Epoch int
	// Note is a remark for the user; "" for none.
	Note string
	// Sets says with which splits the run was trained.
	Sets runs.Sets
	// Table has the vectors of the nodes.
	Table *entities.Table

	store  *layout.Store
	dev    blockdev.Device
	types  []string // names of relations
	nodes  int
	state  *runs.StateFile
	cfg    Config
	scorer rank.Scorer
	budget *mem.Budget
	held   int64
}

// position is the part of a checkpoint's position that concerns vectors. Records say in which files
// they are if they are on disk by partition.
type position struct {
	HasBest    bool   `json:"has_best"`
	BestEpoch  int    `json:"best_epoch"`
	Epoch      int    `json:"epoch"`
	Record     []byte `json:"record"`
	BestRecord []byte `json:"best_record"`

	Sets runs.Sets `json:"sets"`
}

// record returns the record of the best evaluation, or of the last vectors if there was none.
func (p *position) record() []byte {
	if p.BestRecord != nil {
		return p.BestRecord
	}
	return p.Record
}

// arrays returns the names of the arrays with the vectors of nodes and of relations.
func (p *position) arrays(c *setting.Link, run string) (entities, relations string, err error) {
	switch {
	case p.HasBest:
		return runs.BestEntitiesName, runs.BestRelationsName, nil
	case c.Encodes():
		return "", "", runs.NoVectorsYet(run)
	}
	return runs.EntitiesName, runs.RelationsName, nil
}

// Config says how vectors are opened.
type Config struct {
	// Loaded reads all vectors of a checkpoint to memory. It has no effect on vectors that are on
	// disk by partition.
	Loaded bool
	// BlockRows is how many rows of a checkpoint are read at a time, and Frames how many blocks, or
	// partitions, are in memory: with 2, one is read while the other is used.
	BlockRows, Frames int
	// Budget counts the vectors of relations, and the blocks or all vectors.
	Budget *mem.Budget
	// Workers is how many threads compute.
	Workers int
}

// Open opens the vectors of a run to look up single ones and to go through all: a block of rows, or
// a partition, is in memory at a time.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	budget *mem.Budget, workers int) (*Vectors, error) {
	return OpenAs(ctx, store, dev, run, Config{Frames: 1, Budget: budget, Workers: workers})
}

// OpenAs opens the vectors of a run. Vectors in a checkpoint are read once, to check them; vectors
// that are on disk by partition are checked as partitions are read, through dev.
func OpenAs(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	cfg Config) (*Vectors, error) {
	dir := runs.Open(store, run)
	f, err := dir.ReadLink()
	if err == nil {
		err = dir.SameNumbers()
	}
	if err != nil {
		return nil, err
	}
	var v *Vectors
	_, note, err := dir.Whole(func(checkpoint string) error {
		v = &Vectors{Run: run, Settings: *f.Link, types: store.Meta().EdgeTypes,
			nodes: int(store.Meta().Nodes), budget: cfg.Budget, cfg: cfg, store: store, dev: dev}
		if v.cfg.BlockRows == 0 {
			v.cfg.BlockRows = max(1, blockBytes/4/v.Dim())
		}
		return v.openCheckpoint(ctx, dir, checkpoint)
	})
	if err != nil {
		return nil, err
	}
	v.Note = note
	return v, nil
}

// openCheckpoint opens the vectors of a checkpoint.
func (v *Vectors) openCheckpoint(ctx context.Context, dir runs.Dir, checkpoint string) (err error) {
	var pos position
	if v.state, err = dir.OpenState(checkpoint, &pos); err != nil {
		return err
	}
	v.Epoch, v.Sets = pos.BestEpoch, pos.Sets
	name, relations, err := pos.arrays(&v.Settings, v.Run)
	if err != nil {
		return errors.Join(err, v.state.Close())
	}
	if !pos.HasBest {
		v.Epoch = pos.Epoch
	}
	if err = v.open(ctx, relations); err == nil {
		shape := entities.Shape{Count: v.nodes, Dim: v.Dim(), BlockRows: v.cfg.BlockRows}
		switch {
		case v.Settings.ScoredOnDisk():
			v.Table, err = v.openParts(dir, pos.record())
		case v.cfg.Loaded:
			v.Table, err = entities.Loaded(v.state, name, shape, v.budget)
		default:
			v.Table, err = entities.Stored(ctx, v.state, name, shape, v.memory())
		}
	}
	if err != nil {
		return errors.Join(err, v.Close())
	}
	return nil
}

// memory says how many blocks are in memory.
func (v *Vectors) memory() entities.Memory {
	return entities.Memory{Frames: v.cfg.Frames, Budget: v.budget}
}

// Scorer scores with the relations of the run.
func (v *Vectors) Scorer() *rank.Scorer { return &v.scorer }

// open takes the memory, and computes the forms of relations.
func (v *Vectors) open(ctx context.Context, relations string) error {
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
	bytes := 4 * int64(forms*(width+learned)+min(rank.BlockRows, v.nodes)+2*c.Dim)
	if err := v.budget.Reserve("vectors of a run", mem.HeapCost(bytes)); err != nil {
		return fmt.Errorf("train: run %s: %w", v.Run, err)
	}
	v.held = mem.HeapCost(bytes)
	v.scorer = rank.Scorer{Pool: kernel.NewPool(v.cfg.Workers), Decoder: dec, Dim: c.Dim,
		Forms: make([]float32, forms*width), Relations: count, Reciprocal: c.Reciprocal,
		Answers: rank.AnswersOf(v.store.Meta())}
	if learned == 0 {
		return nil
	}
	all := make([]float32, forms*learned)
	if err := v.state.Check(ctx, relations, len(all), all); err != nil {
		return err
	}
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
	if v.Table != nil {
		err = v.Table.Close()
	}
	return errors.Join(err, v.state.Close())
}

// Dim returns the width of the vectors.
func (v *Vectors) Dim() int { return v.Settings.Dim }

// Nodes returns the number of nodes.
func (v *Vectors) Nodes() int { return v.nodes }

// Row reads the vector of a node.
func (v *Vectors) Row(ctx context.Context, node kv.NodeID) ([]float32, error) {
	row := make([]float32, v.Dim())
	return row, v.Table.Gather(ctx, row, []uint32{uint32(node)})
}

// Each calls fn with the vectors of all nodes, a block of consecutive nodes at a time. Rows are
// valid during the call.
func (v *Vectors) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	return v.Table.InOrder(ctx, v.budget, fn)
}

// Score returns the score of an edge.
func (v *Vectors) Score(ctx context.Context, e triples.Triple) (float32, error) {
	var score [1]float32
	err := rank.Pairs(ctx, &v.scorer, v.Table, score[:], []triples.Triple{e}, 0)
	return score[0], err
}

// Complete returns the n best answers to a query without those in skip, which ascends.
func (v *Vectors) Complete(ctx context.Context, q triples.Query, n int,
	skip []uint32) ([]triples.Answer, error) {
	return rank.Top(ctx, &v.scorer, v.Table, q, n, skip)
}

// openParts opens the vectors of a record that are on disk by partition.
func (v *Vectors) openParts(dir runs.Dir, record []byte) (*entities.Table, error) {
	c, meta := &v.Settings, v.store.Meta()
	m, err := partition.New(partition.Spec{Nodes: meta.Nodes, Parts: c.Partitions, Random: true,
		Seed: c.Seed})
	if err != nil {
		return nil, err
	}
	spec := entities.FileSpec{UUID: meta.UUID, Map: m, Columns: c.Dim,
		State: len(runs.LinkState(c.Optimizer)), Init: func(row []float32, entity uint64) {
			decoder.InitialEntity(row, c.Seed, entity, c.Init)
		}}
	files, err := entities.ViewFiles(v.store.FS(), dir.Path(runs.PartitionsDir), v.dev, spec,
		record)
	if err != nil {
		return nil, err
	}
	return entities.Paged(files, v.memory(),
		func(err error) error {
			if errors.Is(err, layout.ErrCorrupt) && outdated(dir, record) {
				return fmt.Errorf("run %s trains, and its vectors have changed since this began: "+
					"ask again", dir.Name())
			}
			return err
		})
}

// outdated reports whether a run has gone on from a record, which removes files that
// the record names.
func outdated(dir runs.Dir, record []byte) bool {
	var now position
	name, err := dir.Current()
	if err != nil {
		return false
	}
	state, err := dir.OpenState(name, &now)
	return err == nil && state.Close() == nil && !bytes.Equal(now.record(), record)
}
