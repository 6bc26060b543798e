// Package paged trains vectors of entities that do not fit in memory. They are on disk by
// partition, some partitions are in a buffer, and an epoch goes through the edges between these,
// set by set (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", sections 5 and 6). While a
// set is trained on, the partitions and edges of the next set are read, and partitions that left
// the buffer are written.
//
// A Plan says how many partitions there are and which are in memory when. A Source goes through an
// epoch according to a plan. Rows goes through all entities once, to evaluate and to predict.
package paged

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/triples"

	"github.com/RoaringBitmap/roaring/v2"
)

// Config says what a Source is made from.
type Config struct {
	Store  *layout.Store
	Device blockdev.Device
	// Path is the directory of the partitions.
	Path string
	Plan *Plan
	// Init writes the initial vector of an entity.
	Init   func(row []float32, entity uint64)
	Budget *mem.Budget
}

// Source provides the entities and the edges of a training. It may be used by one goroutine.
type Source struct {
	cfg     Config
	sets    *partition.Buckets
	dir     *entities.Files
	buf     *frames
	order   *partition.Order
	account mem.Account
	once    int // the most edges in a part

	epoch  *partition.Epoch // nil before the first
	number uint64           // of epoch
	pieces []piece
	set    int // the set that is resident; -1 for none
	// changed holds the partitions that were trained on since the last checkpoint. touched says
	// that the partitions of the current set are among them.
	changed *roaring.Bitmap
	touched bool
	now     edges
	spare   edges    // memory for edges that is not in use
	ahead   *reading // nil if nothing is read ahead
}

// Open opens the entities as the records of a checkpoint have them or, if the records are nil, with
// initial vectors. Edges are sorted into buckets if they are not yet, which note tells the user.
func Open(ctx context.Context, cfg Config, record, best []byte) (s *Source, note string,
	err error) {
	s = &Source{cfg: cfg, set: -1, once: cfg.Plan.EdgesOnce, changed: roaring.New(),
		account: mem.NewAccount(cfg.Budget, "edges of partitions")}
	if s.order, err = partition.NewOrder(cfg.Plan.Order); err != nil {
		return nil, "", err
	}
	s.sets, note, err = OpenBuckets(ctx, &cfg)
	if err != nil {
		return nil, "", err
	}
	if err := s.open(record, best); err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	return s, note, nil
}

// Check returns an error about damage unless all files to which the records of a checkpoint refer
// exist and have the right size. Records that are nil refer to none.
func Check(cfg Config, record, best []byte) error {
	spec, err := cfg.Plan.spec(cfg.Store.Meta())
	if err != nil {
		return err
	}
	return entities.CheckFiles(cfg.Store.FS(), cfg.Path, spec, record, best)
}

// sortBytes is the most memory that sorting edges into buckets takes.
const sortBytes = 1 << 30

// OpenBuckets opens the edges by bucket. They are sorted in a part of the free memory, if
// they are not yet.
func OpenBuckets(ctx context.Context, cfg *Config) (*partition.Buckets, string, error) {
	m, err := cfg.Plan.Map(cfg.Store.Meta())
	if err != nil {
		return nil, "", err
	}
	memory := int64(sortBytes)
	if limit := cfg.Budget.Limit(); limit > 0 {
		memory = min(memory, (limit-cfg.Budget.Used())/3)
	}
	sets, note, err := partition.OpenBuckets(ctx, cfg.Store, cfg.Device, partition.BucketOptions{
		Partition: m.Spec(), Memory: memory, Budget: cfg.Budget})
	if err == nil && note != "" {
		cfg.Budget.CollectHeap()
	}
	return sets, note, err
}

// open opens the partitions, and takes the memory.
func (s *Source) open(record, best []byte) error {
	spec, err := s.cfg.Plan.spec(s.cfg.Store.Meta())
	if err != nil {
		return err
	}
	spec.Init = s.cfg.Init
	fs := s.cfg.Store.FS()
	if record == nil {
		s.dir, err = entities.CreateFiles(fs, s.cfg.Path, s.cfg.Device, spec)
	} else {
		s.dir, err = entities.OpenFiles(fs, s.cfg.Path, s.cfg.Device, spec, record, best)
	}
	if err != nil {
		return err
	}
	for from := range spec.Map.Parts() {
		for to := range spec.Map.Parts() {
			s.once = max(s.once, int(s.sets.Count(partition.Bucket{From: uint16(from),
				To: uint16(to)})))
		}
	}
	if err := s.account.Add(int64(2*tripleBytes*s.once) + streamBytes); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	s.buf, err = newFrames(s.dir, s.cfg.Plan.Frames, s.cfg.Budget)
	return err
}

// Close frees the memory. Changes since the last checkpoint are lost.
func (s *Source) Close() (err error) {
	s.drop()
	if s.buf != nil {
		err = s.buf.Close()
	}
	if s.dir != nil {
		err = errors.Join(err, s.dir.Close())
	}
	s.account.Release()
	return errors.Join(err, s.sets.Close())
}

// Arrays returns the vectors and the optimizer's arrays of the buffer's rows.
func (s *Source) Arrays() [][]float32 { return s.buf.arrays }

// Buckets returns the train edges by pairs of partitions.
func (s *Source) Buckets() *partition.Buckets { return s.sets }

// First returns the buffer row at which a resident partition begins.
func (s *Source) First(part int) uint32 { return s.buf.first(part) }

// BufferRows returns how many rows the arrays have.
func (s *Source) BufferRows() int { return len(s.buf.arrays[0]) / s.cfg.Plan.dim }

// begin makes the order of an epoch, unless it is the current one.
func (s *Source) begin(epoch uint64) {
	if s.epoch != nil && s.number == epoch {
		return
	}
	s.drop()
	s.epoch, s.number = s.order.Epoch(int(epoch)), epoch
	s.pieces = cut(s.epoch, s.sets.Count, s.once)
	s.set = -1
}

// Parts returns how many parts an epoch has: at least one for each set.
func (s *Source) Parts(epoch uint64) int {
	s.begin(epoch)
	return len(s.pieces)
}

// Sets returns how many sets an epoch has.
func (s *Source) Sets(epoch uint64) int {
	s.begin(epoch)
	return s.epoch.Sets()
}

// Load loads a part: afterwards its partitions are resident and its edges in memory. Ends of edges
// are rows of the buffer's arrays. The part is valid until the next Load.
func (s *Source) Load(ctx context.Context, epoch uint64, part int) (*triples.Part, error) {
	s.begin(epoch)
	ctx = context.WithoutCancel(ctx) // what is under way ends soon, and a checkpoint needs it whole
	p := &s.pieces[part]
	if s.set != p.set {
		var next *roaring.Bitmap
		if p.set+1 < s.epoch.Sets() {
			next = s.epoch.Set(p.set + 1)
		}
		if err := s.buf.Advance(ctx, s.epoch.Set(p.set), next); err != nil {
			return nil, err
		}
		s.set, s.touched = p.set, false
	}
	if err := s.edgesOf(ctx, part); err != nil {
		return nil, err
	}
	s.now.move(s.buf.first)
	out := &triples.Part{Edges: s.now.list, Set: s.epoch.Partitions(p.set)}
	m, resident := s.dir.Spec().Map, s.epoch.Set(p.set)
	out.RowOf = func(node uint32) (uint32, bool) {
		part, row := m.Place(kv.NodeID(node))
		if !resident.Contains(uint32(part)) {
			return 0, false
		}
		return s.buf.first(part) + uint32(row), true
	}
	for _, part := range out.Set {
		out.Spans = append(out.Spans, triples.Span{Row: s.buf.first(part),
			Count: uint32(m.Size(part))})
	}
	return out, nil
}

// Touch says that rows of the part were changed.
func (s *Source) Touch() {
	if s.touched {
		return
	}
	s.touched = true
	s.buf.Touch()
	s.changed.Or(s.buf.Resident())
}

// CheckpointFirst reports whether a checkpoint must be made before a part is loaded: without one
// the files might take more than entities.FileSpec.DiskLimit.
func (s *Source) CheckpointFirst(epoch uint64, part int) bool {
	s.begin(epoch)
	if s.set == s.pieces[part].set || s.changed.IsEmpty() {
		return false
	}
	spec := s.dir.Spec()
	all := roaring.Or(s.changed, s.epoch.Set(s.pieces[part].set))
	return s.dir.BytesWith(all) > spec.DiskLimit()
}

// Prepare writes what has changed, and returns the records for a checkpoint. Once that is made,
// Committed is called.
func (s *Source) Prepare(ctx context.Context) (record, best []byte, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, nil, err
	}
	return s.dir.Prepare()
}

// flush writes what has changed.
func (s *Source) flush(ctx context.Context) error {
	s.touched = false
	return s.buf.Flush(ctx)
}

// Committed removes what only the previous checkpoint needed.
func (s *Source) Committed() error {
	s.changed.Clear()
	return s.dir.Committed()
}

// KeepBest keeps the vectors as those of the best evaluation. A checkpoint must follow before
// another part is loaded.
func (s *Source) KeepBest(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.dir.KeepBest()
	return nil
}

// Stats returns what the buffer did.
func (s *Source) Stats() (partition.BufferStats, error) { return s.buf.Stats() }

// Rows gives access to the vectors of all entities, by partition, and to the edges that are
// known to be true.
type Rows struct {
	*entities.Table
	*entities.OnDisk
}

// Close frees the memory.
func (r *Rows) Close() error { return errors.Join(r.OnDisk.Close(), r.Table.Close()) }

// Rows returns the vectors of all entities: the current ones or, with best, those of the best
// evaluation. It empties the buffer, and uses its memory until the next Load. others are the edges
// of the splits besides train.
func (s *Source) Rows(ctx context.Context, others [][]triples.Triple, best bool) (*Rows, error) {
	if err := s.buf.Empty(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	s.set = -1
	dir := s.dir
	if best {
		dir = s.dir.Best()
	}
	t := entities.PagedIn(dir, s.buf.vectors())
	return &Rows{Table: t, OnDisk: entities.Bucketed(t, s.sets, others, s.cfg.Budget)}, nil
}
