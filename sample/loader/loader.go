// Package loader makes the mini-batches of a training: seeds in, sampled and gathered batches out.
// It knows no model. A Source holds what is read open, as far as memory allows; a Loader makes the
// batches of each epoch from it, through a pipeline or as superbatches; an Epoch hands these out
// and measures what they took.
package loader

import (
	"context"
	"errors"

	"gdb/sample"
	"gdb/sample/partbuffer"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
)

// Config says which batches a Loader makes, and how. The caller splits the memory between parts.
type Config struct {
	// Seeds are the nodes that each epoch goes through, in an order of its own.
	Seeds []sample.NodeID
	// Same, if it is not nil, is the order of the only epoch, in place of one of Seeds. Batches are
	// drawn as those of its epoch; superbatches count it as epoch 0.
	Same *sample.Order
	// Batch is the number of seeds of a batch, which comes as Parts batches: see Order.Split. With
	// 0 or 1 it comes whole.
	Batch, Parts int
	// Fanout is the number of neighbors drawn at each hop, nil if the source has layer sizes.
	// ByRelation has those of each hop by number of relation, in its place: see sample.Config. Seed
	// is the number that all draws depend on.
	Fanout     []int
	ByRelation [][]int
	Seed       uint64
	// Macro is how many batches, or parts of them, are sliced from one macro-batch. With 0 or 1
	// each is drawn by itself.
	Macro int
	// Workers is the number of goroutines that sample. PassWorkers is the number that draw
	// macro-batches and passes; while a pass goes on, nothing else works.
	Workers, PassWorkers int
	// Ready, InTurn and RowBytes are fields of sample.PipelineConfig.
	Ready    int
	InTurn   bool
	RowBytes int64
	// Features returns what a batch gathers rows from; nil takes those of the source.
	Features func(b *sample.Batch) rowcache.Features
	// Later leaves Batch.X nil: whoever takes a batch gathers its features.
	Later bool
	// Places has batches keep where their edges stand in the lists: see sample.Extras.
	Places bool
	// Prepare and Finish are fields of sample.PipelineConfig.
	Prepare, Finish func(b *sample.Batch) error
	// Pages locks the memory of Batch.X of superbatches; nil does not.
	Pages sample.Pages
	// Superbatch, if it is not nil, makes batches as superbatches. Fields that the source or the
	// settings above determine are filled in.
	Superbatch *superbatch.Config
	// Draws, if it is not nil, returns what draws batches, each by itself, in place of samplers of
	// the host, which it may use for some and which it closes.
	Draws func(host *sample.Samplers) sample.Drawer
	// Buffer, if it is not nil, draws batches from the partitions that it holds in memory. The
	// caller closes it.
	Buffer *partbuffer.Buffer
}

// order returns the order of an epoch's seeds.
func (c *Config) order(epoch uint64) (*sample.Order, error) {
	if c.Same != nil {
		return c.Same, nil
	}
	o, err := sample.EpochOrder(c.Seeds, c.Seed, epoch, c.Batch)
	if err == nil {
		o = o.Split(c.Parts)
	}
	return o, err
}

// Open starts the batches of one order from batch first on, as a pipeline or a superbatch. Closing
// them frees all that they take.
func Open(ctx context.Context, src *Source, c Config, order *sample.Order,
	first uint64) (sample.Batches, error) {
	if c.Superbatch == nil {
		return src.Pipeline(ctx, &c, order, first, nil)
	}
	c.Same = order
	l := New(src, c)
	e, err := l.Epoch(ctx, 0, first)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &lastEpoch{Batches: e.Batches, loader: l, epoch: order.Epoch()}, nil
}

// Order starts the batches of an order from batch first on, in the place of an epoch of the
// loader's own seeds. They are drawn as those of its epoch. Closing them frees all that they take.
func (l *Loader) Order(ctx context.Context, order *sample.Order, first uint64) (sample.Batches,
	error) {
	return Open(ctx, l.src, l.cfg, order, first)
}

// Prepares reports whether batches are superbatches, which are prepared many at a time.
func (l *Loader) Prepares() bool { return l.cfg.Superbatch != nil }

// Again starts the batches of an order in the place of an epoch. Later calls are for the same order
// again: what superbatches keep of its batches is used then, see superbatch.Config.Repeats. The
// batches of one call are taken and closed before the next; a loader that failed is closed.
func (l *Loader) Again(ctx context.Context, order *sample.Order) (sample.Batches, error) {
	l.cfg.Same = order
	if l.super != nil {
		if err := l.super.Again(); err != nil {
			return nil, err
		}
	}
	e, err := l.Epoch(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	return &lastEpoch{Batches: e.Batches, epoch: order.Epoch()}, nil
}

// lastEpoch closes the loader of its batches too, if it has one, and has them be of the epoch of
// their order.
type lastEpoch struct {
	sample.Batches
	loader *Loader
	epoch  uint64
}

// Next returns the next batch.
func (e *lastEpoch) Next(ctx context.Context) (*sample.Batch, error) {
	b, err := e.Batches.Next(ctx)
	if err == nil {
		b.Epoch = e.epoch
	}
	return b, err
}

// Close frees the memory of batches and removes their files.
func (e *lastEpoch) Close() error {
	err := e.Batches.Close()
	if e.loader != nil {
		err = errors.Join(err, e.loader.Close())
	}
	return err
}

// Loader makes the batches of epochs. One goroutine may use it.
type Loader struct {
	src   *Source
	cfg   Config
	super *superbatch.Loader // nil until the first superbatch is asked for
	// buffers are the memory that one epoch leaves to the next; nil until the first.
	buffers *sample.Buffers
}

// New returns a loader of batches from src, which must have open all that they need. The caller
// closes the loader before the source.
func New(src *Source, cfg Config) *Loader { return &Loader{src: src, cfg: cfg} }

// Epoch starts the batches of an epoch, from batch first on. Superbatches go over several epochs,
// so their epochs must follow each other.
func (l *Loader) Epoch(ctx context.Context, epoch, first uint64) (*Epoch, error) {
	e := l.measure()
	if l.buffers == nil {
		c := sample.PipelineConfig{Ready: l.cfg.Ready, InTurn: l.cfg.InTurn, Budget: l.src.Budget}
		l.buffers = c.NewBuffers()
	}
	var err error
	if l.cfg.Superbatch != nil {
		e.Batches, err = l.superbatch(epoch, first)
		if err == nil {
			e.cache, e.stats = l.CacheStats(), e.Batches.Stats() // without earlier epochs
		}
		return e, err
	}
	if l.cfg.Buffer != nil {
		e.Batches, err = l.partitions(ctx, epoch, first)
		return e, err
	}
	order, err := l.cfg.order(epoch)
	if err == nil {
		e.Batches, err = l.src.Pipeline(ctx, &l.cfg, order, first, l.buffers)
	}
	return e, err
}

// Pipeline starts the batches of an order, from batch first on. buffers are those that pipelines
// with this configuration use one after the other, or nil.
func (s *Source) Pipeline(ctx context.Context, c *Config, order *sample.Order, first uint64,
	buffers *sample.Buffers) (*sample.Pipeline, error) {
	features, of := s.Features, c.Features
	if c.Later {
		features, of = nil, nil
	}
	return sample.NewPipeline(ctx, sample.PipelineConfig{
		Drawer: func(workers int) (sample.Drawer, error) {
			per := order.Batches()
			same := *c
			same.Same = order
			return s.drawer(&same, workers, per, first, per)
		},
		Order: order, StartBatch: first, Features: features, FeaturesOf: of,
		Split: s.Split, Cut: s.Cut, Labels: s.Labels, Prepare: c.Prepare, Finish: c.Finish,
		Workers: c.Workers, Ready: c.Ready, InTurn: c.InTurn, RowBytes: c.RowBytes,
		Buffers: buffers, Budget: s.Budget})
}

// partitions starts an epoch of batches from partitions in memory, from batch first on.
func (l *Loader) partitions(ctx context.Context, epoch, first uint64) (sample.Batches, error) {
	c, s := &l.cfg, l.src
	drawer := func(c Config) func(workers int) (sample.Drawer, error) {
		return func(workers int) (sample.Drawer, error) {
			return s.samplers(c.Buffer, &c, workers)
		}
	}
	p := partbuffer.Pipelines{PipelineConfig: sample.PipelineConfig{
		Drawer: drawer(*c), Labels: s.Labels, Prepare: c.Prepare, Workers: c.Workers,
		Ready: c.Ready, InTurn: c.InTurn, RowBytes: c.RowBytes, Buffers: l.buffers,
		Budget: s.Budget}}
	if len(c.Fanout) > 0 {
		inner := *c
		inner.Fanout, inner.ByRelation = c.Fanout[1:], c.ByRelation[min(1, len(c.ByRelation)):]
		p.Refresher = drawer(inner)
	}
	return c.Buffer.Epoch(ctx, s.Topology, epoch, first, p)
}

// superbatch starts an epoch of superbatches, and opens their loader before the first epoch.
func (l *Loader) superbatch(epoch, first uint64) (sample.Batches, error) {
	if l.super == nil {
		c, s := *l.cfg.Superbatch, l.src
		c.Graph = s.UseGraph
		c.Order = l.cfg.order
		c.Drawer = func(workers int, perEpoch, from, end uint64) (sample.Drawer, error) {
			return s.drawer(&l.cfg, workers, perEpoch, from, end)
		}
		c.Epoch, c.StartBatch = epoch, first
		c.Nodes, c.Rows, c.Labels = s.Meta.Nodes, s.Rows, s.Labels
		c.Split, c.Cut = s.Split, s.Cut
		c.Prepare, c.Finish, c.Pages = l.cfg.Prepare, l.cfg.Finish, l.cfg.Pages
		c.FS, c.Prep, c.UUID, c.Device = s.Store.FS(), s.Store.Path("prep"), s.Meta.UUID, s.Device
		c.Budget = s.Budget
		var err error
		if l.super, err = superbatch.Open(c); err != nil {
			return nil, err
		}
	}
	return l.super.Epoch(epoch)
}

// CacheStats returns the statistics of the cache that batches read features through.
func (l *Loader) CacheStats() rowcache.Stats {
	if l.super != nil {
		return l.super.CacheStats()
	}
	features := l.src.Features
	if b := l.cfg.Buffer; b != nil {
		features = b.Features()
	}
	if features == nil {
		return rowcache.Stats{}
	}
	return features.Stats()
}

// Rest gives back the memory that one epoch would leave to the next, until that begins. No epoch
// may be open.
func (l *Loader) Rest() error {
	if l.buffers != nil {
		l.buffers.FreeIdle()
	}
	if l.cfg.Buffer != nil {
		return l.cfg.Buffer.Rest()
	}
	return nil
}

// Close frees the memory that epochs share and that of superbatches, and removes their files.
func (l *Loader) Close() (err error) {
	if l.buffers != nil {
		err = l.buffers.Close()
	}
	if l.super != nil {
		err = errors.Join(err, l.super.Close())
	}
	return err
}
