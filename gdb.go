// Package gdb is the embedding interface of gdb: open a store, sample mini-batches, read features.
//
// It is thin: everything behind it lives in layout (the store on disk), sample (seeds to batch)
// and blockdev (reads), which programs inside this module use directly.
package gdb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/parts"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/shell/graph"
	"gdb/shell/query"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure an opened store. The zero value is ready to use.
type Options struct {
	// Memory bounds caches and buffers, in bytes. Default: a quarter of what the process may use.
	Memory int64
	// Backend is how files are read. Default blockdev.Auto.
	Backend blockdev.Backend
	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// At is the snapshot to read: a number, a day, a time, or a name; see layout.OpenAt. Default:
	// the last.
	At string
	// Budget counts what the store takes, for a program that counts more in it than that. Default:
	// one of Memory.
	Budget *mem.Budget
	// Threads is how many goroutines a statement computes on. Default: as many as processors.
	Threads int
	// Vectors opens what runs have learned, for the statements NEAREST and SCORE:
	// graph.VectorsBy(vectors.Open). Without it these are errors, and the program links no kernels.
	Vectors graph.OpenVectors
	// Nearest opens vectors with their indexes, for NEAREST: graph.NearestBy(nearest.Open). Without
	// it the vectors of all nodes are compared.
	Nearest graph.OpenNearest
	// Predict predicts with runs, for the procedure gdb.predict: train.PredictNodes. Without it
	// that is an error.
	Predict graph.Predict
}

// ErrClosed is the error of methods of a DB that was closed.
var ErrClosed = errors.New("the store was closed")

// DB is an opened store. It may be used from any goroutine.
type DB struct {
	store  *layout.Store
	dev    blockdev.Device
	own    blockdev.Device // dev if Close closes it, else nil
	topo   topology.Reader
	rows   *rowfile.Reader // nil without features
	ids    ids.Dictionary
	budget *mem.Budget
	engine *query.Engine // it owns the open files

	// use is held for reading by each method while it reads, and for writing by Close.
	use struct {
		sync.RWMutex
		closed bool
		stats  Stats // when it was closed
	}
	mu struct {
		sync.Mutex
		labels *sample.Labels // nil before they are asked for
	}
}

// Ingest loads source files into a new store; see ingest.Options.
func Ingest(ctx context.Context, opt ingest.Options) (*kv.Meta, error) {
	meta, _, err := parts.Ingest(ctx, vfs.Default, opt)
	return meta, err
}

// Open opens the store in dir for reading. The caller closes it.
func Open(ctx context.Context, dir string, opt Options) (*DB, error) {
	if opt.FS == nil {
		opt.FS = vfs.Default
	}
	if opt.Memory == 0 {
		opt.Memory = mem.Available() / 4
	}
	st, err := layout.OpenAt(ctx, opt.FS, dir, opt.At)
	if err != nil {
		return nil, err
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: opt.Backend})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gdb: open %s: %w", dir, err), st.Close())
	}
	db, err := OpenOn(ctx, st, dev, opt)
	if err != nil {
		return nil, errors.Join(err, dev.Close(), st.Close())
	}
	db.own = dev
	return db, nil
}

// OpenOn opens a store that a program of this module has open, and reads it through dev. The caller
// closes both after the DB. opt.Backend and opt.FS are not read.
func OpenOn(ctx context.Context, st *layout.Store, dev blockdev.Device, opt Options) (*DB, error) {
	if opt.Budget == nil {
		opt.Budget = mem.NewBudget(opt.Memory)
	}
	db := &DB{store: st, dev: dev, budget: opt.Budget}
	db.engine = query.NewEngine(st, dev, db.budget, querySeed)
	db.engine.SetThreads(opt.Threads)
	db.engine.Learned(opt.Vectors, opt.Nearest, opt.Predict)
	if err := db.openFiles(ctx, opt.Memory); err != nil {
		return nil, errors.Join(fmt.Errorf("gdb: open %s: %w", st.Path(), err), db.Close())
	}
	return db, nil
}

// querySeed is the seed of statements that name none, as that of gdb shell.
const querySeed = 1

// The parts of Memory for cached blocks of the topology, and for those of names.
const (
	cacheShare     = 4
	nameCacheShare = 16
)

// openFiles opens what the methods read; statements share it.
func (db *DB) openFiles(ctx context.Context, memory int64) (err error) {
	files := db.engine.Files()
	db.topo, err = files.Topology(ctx, layout.In,
		topology.Options{CacheBytes: memory / cacheShare})
	if err != nil {
		return err
	}
	if f := db.store.Meta().Features; len(f) > 0 {
		if db.rows, err = files.Rows(ctx, f[0]); err != nil {
			return err
		}
	}
	db.ids, err = files.IDs(ctx, memory/nameCacheShare)
	return err
}

// begin begins to read, unless the store was closed. The caller then ends by db.use.RUnlock.
func (db *DB) begin(what string) error {
	db.use.RLock()
	if db.use.closed {
		db.use.RUnlock()
		return fmt.Errorf("gdb: %s: %w", what, ErrClosed)
	}
	return nil
}

// Meta describes the store, also after Close; it must not be changed.
func (db *DB) Meta() *kv.Meta { return db.store.Meta() }

// Node returns the node id of an external id, or an error that wraps kv.ErrNotFound.
func (db *DB) Node(ctx context.Context, external string) (kv.NodeID, error) {
	if err := db.begin("node"); err != nil {
		return 0, err
	}
	defer db.use.RUnlock()
	return db.ids.Internal(ctx, external)
}

// Alternatives helps who asked for an external id that no node has: it returns an id that differs
// only in the case of letters, or by a type of nodes in front, "" if there is none; and otherwise
// at most two ids that the store has.
func (db *DB) Alternatives(ctx context.Context, external string) (meant string, examples []string) {
	if err := db.begin("alternatives"); err != nil {
		return "", nil
	}
	defer db.use.RUnlock()
	return ids.Alternatives(ctx, db.ids, db.store.Meta(), external)
}

// External returns the external ids of nodes.
func (db *DB) External(ctx context.Context, nodes []kv.NodeID) ([]string, error) {
	if err := db.begin("external ids"); err != nil {
		return nil, err
	}
	defer db.use.RUnlock()
	return db.ids.External(ctx, nodes, nil)
}

// Sample draws the multi-hop neighborhood of seeds, as training would for this seed, epoch and
// batch number: fanout has one number a hop, the hop next to the seeds first. Where edges have
// types the sample has them.
func (db *DB) Sample(ctx context.Context, seeds []kv.NodeID, fanout []int, seed, epoch,
	batch uint64) (*sample.Dense, error) {
	if err := db.begin("sample"); err != nil {
		return nil, err
	}
	defer db.use.RUnlock()
	s, err := sample.NewSampler([]topology.Reader{db.topo},
		sample.Config{Fanout: fanout, Seed: seed, Budget: db.budget,
			Extras: sample.Extras{EdgeTypes: len(db.Meta().EdgeTypes) > 0}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	d := &sample.Dense{}
	return d, s.Sample(ctx, epoch, batch, seeds, d)
}

// Features returns the feature rows of nodes: (len(nodes), dim) row-major. They are counted in the
// memory of the store while they are read.
func (db *DB) Features(ctx context.Context, nodes []kv.NodeID) (rows []float32, dim int,
	err error) {
	if err := db.begin("features"); err != nil {
		return nil, 0, err
	}
	defer db.use.RUnlock()
	if db.rows == nil {
		return nil, 0, fmt.Errorf("gdb: features: %w: the store holds none", kv.ErrNotFound)
	}
	dim = db.rows.Meta().Dim
	bytes := floatBytes * int64(len(nodes)) * int64(dim)
	if err := db.budget.Reserve("features of nodes", bytes); err != nil {
		return nil, 0, fmt.Errorf("gdb: features: %w, or ask for fewer nodes at a time", err)
	}
	defer db.budget.Release(bytes)
	rows = make([]float32, len(nodes)*dim)
	return rows, dim, db.rows.Gather(ctx, nodes, nil, rows)
}

// floatBytes is what a float32 or an int32 takes.
const floatBytes = 4

// NodeLabels are labels of nodes in the form in which the store has them; the other forms are nil.
type NodeLabels struct {
	Classes []int32   // (nodes): numbers of classes, -1 for none
	Numbers []float32 // (nodes): NaN for none
	Bits    []float32 // (nodes, Width): 1 for classes of a node, 0 for others, NaN for unknown
	Width   int
}

// Labels returns the labels of nodes. They are counted in the memory of the store while they are
// read.
func (db *DB) Labels(ctx context.Context, nodes []kv.NodeID) (out NodeLabels, err error) {
	if err := db.begin("labels"); err != nil {
		return out, err
	}
	defer db.use.RUnlock()
	l, err := db.openLabels(ctx)
	if err != nil {
		return out, err
	}
	n := len(nodes)
	if l.Multi() {
		out.Width = l.Classes()
		n *= out.Width
	}
	bytes := floatBytes * int64(n)
	if err := db.budget.Reserve("labels of nodes", bytes); err != nil {
		return out, fmt.Errorf("gdb: labels: %w, or ask for fewer nodes at a time", err)
	}
	defer db.budget.Release(bytes)
	switch {
	case l.Multi():
		out.Bits = make([]float32, n)
		err = l.Bits(ctx, nodes, out.Bits)
	case l.Numbers():
		out.Numbers = make([]float32, n)
		err = l.Values(ctx, nodes, out.Numbers)
	default:
		out.Classes = make([]int32, n)
		err = l.Of(ctx, nodes, out.Classes)
	}
	return out, err
}

// openLabels opens the labels when they are first asked for.
func (db *DB) openLabels(ctx context.Context) (*sample.Labels, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.labels != nil {
		return db.mu.labels, nil
	}
	m := db.store.Meta()
	if m.Labels == nil {
		return nil, fmt.Errorf("gdb: labels: %w: the store holds none", kv.ErrNotFound)
	}
	rows, err := db.engine.Files().Rows(ctx, m.Labels.Rows)
	if err != nil {
		return nil, err
	}
	db.mu.labels, err = sample.NewLabels(ctx, m.Labels, rows, m.Nodes, db.budget)
	return db.mu.labels, err
}

// Query runs a statement of the shell and returns its rows, with the names and types of the columns
// and what it cost. params are the values of $NAME in a statement of openCypher: numbers, text,
// true and false, and slices and maps of these; nil for none. Statements may run at the same time.
// docs/shell.md and docs/cypher.md describe the languages.
func (db *DB) Query(ctx context.Context, statement string, params map[string]any) (*query.Result,
	error) {
	if err := db.begin("query"); err != nil {
		return nil, err
	}
	defer db.use.RUnlock()
	return db.engine.Query(ctx, statement, params)
}

// QueryColumns runs a statement as Query does, and returns its rows by columns, in the buffers of
// Apache Arrow's format. They are counted in the memory of the store until the caller releases
// them.
func (db *DB) QueryColumns(ctx context.Context, statement string,
	params map[string]any) (*query.Columns, error) {
	if err := db.begin("query"); err != nil {
		return nil, err
	}
	defer db.use.RUnlock()
	return db.engine.Columns(ctx, statement, params)
}

// Stats are counters of an opened store.
type Stats struct {
	IO       blockdev.Stats
	Topology topology.Stats
}

// Stats returns the counters since Open; after Close, those until then.
func (db *DB) Stats() Stats {
	db.use.RLock()
	defer db.use.RUnlock()
	if db.use.closed {
		return db.use.stats
	}
	return db.statsLocked()
}

func (db *DB) statsLocked() (s Stats) {
	s.IO = db.dev.Stats()
	if db.topo != nil {
		s.Topology = db.topo.Stats()
	}
	return s
}

// Close closes the files, once the methods under way have ended: who cancels their contexts waits
// less. Methods that are called later fail with ErrClosed; slices that they returned stay valid.
// Further calls do nothing.
func (db *DB) Close() error {
	db.use.Lock()
	defer db.use.Unlock()
	if db.use.closed {
		return nil
	}
	db.use.closed, db.use.stats = true, db.statsLocked()
	var err error
	if db.mu.labels != nil {
		err = db.mu.labels.Close()
	}
	if err = errors.Join(err, db.engine.Close()); db.own != nil {
		err = errors.Join(err, db.own.Close(), db.store.Close())
	}
	return err
}
