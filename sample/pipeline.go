package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample/draw"
	"gdb/sample/rowcache"
)

// sampledMax bounds how many sampled batches wait to be gathered.
const sampledMax = 1

// ErrClosed is returned by a pipeline that was closed.
var ErrClosed = errors.New("sample: the pipeline is closed")

// PipelineConfig configures a pipeline.
type PipelineConfig struct {
	// Drawer returns what draws the batches for a number of workers. It is called once, and the
	// pipeline closes the result.
	Drawer func(workers int) (Drawer, error)
	// Order is the order of the epoch's seeds, cut into batches.
	Order *Order
	// StartBatch is the first batch. It is not 0 when an epoch is resumed.
	StartBatch uint64
	// EndBatch is the batch after the last. 0, or one past the end of the epoch, is the end.
	EndBatch uint64
	// Features fill Batch.X, and Batch.Table if they lend their rows; nil leaves both nil. The
	// caller closes them.
	Features rowcache.Features
	// FeaturesOf returns what takes the place of Features for a batch, if it is not nil.
	FeaturesOf func(b *Batch) rowcache.Features
	// Split says of which pieces Features has the rows, which are then put together in Batch.X; nil
	// if it has whole rows. Batches have no times then. With Cut they stay pieces: see
	// Batch.TablePieces. Without, Features lend no rows.
	Split *rowfile.Split
	Cut   bool
	// Labels fill the labels of a Batch; nil leaves them nil. The caller closes them.
	Labels *Labels
	// Prepare makes what the step on a batch needs that follows from its Dense, and sets
	// Batch.Prepared, which the batch keeps. It is called by the goroutine that drew the batch, and
	// again for a batch that was given up. nil makes nothing.
	Prepare func(b *Batch) error
	// Finish does what is left to prepare of a batch that has its features and labels. The gatherer
	// calls it. nil does nothing.
	Finish func(b *Batch) error
	// Workers is the number of goroutines that sample. Default 1.
	Workers int
	// Ready is how many gathered batches may wait. With 0 a slow batch stalls the step; more than 2
	// only take memory. Features take the memory of Ready + 2 batches.
	Ready int
	// InTurn gathers a batch only once the one before was released, so memory for the features of
	// one batch suffices. Ready is not used then.
	InTurn bool
	// RowBytes is the memory that is first taken for the features of a batch, in bytes. A batch
	// that needs more gets more, with a sixteenth to spare.
	RowBytes int64
	// Counters count what the pipeline does, beside what others did before. Nil takes new ones.
	Counters *Counters
	// Buffers are those for features, which pipelines with the same Ready and InTurn use one after
	// the other: see NewBuffers. Nil takes new ones.
	Buffers *Buffers
	// Budget counts the batches' memory; nil counts none.
	Budget *mem.Budget
}

// Pipeline makes the batches of one epoch: workers sample, the gatherer fills in features and
// labels, and Next hands the batches out in order, whatever the number of workers. All buffers
// between are bounded, and all memory is reused.
//
// A worker takes an empty batch before it takes the next index, and the gatherer takes indexes in
// order, so the stages cannot block each other. If the budget is short, batches that are not due
// give up what they hold (see room.go), so an epoch runs with the memory of its largest batch.
type Pipeline struct {
	cfg    PipelineConfig
	stages *StageGroup

	next    atomic.Uint64 // the next index to sample
	end     uint64
	empty   chan *Batch
	rows    *Buffers
	all     []*Batch
	drawer  Drawer
	sampled []chan *Batch // by index modulo their number; each has room for one batch
	ready   []chan *Batch // like sampled

	due   uint64 // the next index to hand out
	since time.Time

	gathered  atomic.Uint64 // number of batches
	released  atomic.Uint64 // number of batches that the consumer gave back
	working   atomic.Int64  // number of stages at work on a batch
	endRelief func()        // nil without a budget

	counts *Counters

	// unique numbers the nodes of a batch that has some several times: see gatherRows.
	unique struct {
		table *draw.NodeTable
		nodes []NodeID
		loc   []uint32
	}
	uniqueHeld mem.Account

	mu struct {
		sync.Mutex
		closed bool
		held   int64 // bytes counted in Budget, without the buffers of rows
	}
}

// NewPipeline starts the workers. The caller calls Close.
func NewPipeline(ctx context.Context, cfg PipelineConfig) (*Pipeline, error) {
	cfg.Workers = max(cfg.Workers, 1)
	end := cfg.Order.Batches()
	if cfg.EndBatch > 0 && cfg.EndBatch < end {
		end = cfg.EndBatch
	}
	if cfg.StartBatch > end {
		return nil, fmt.Errorf("sample: start at batch %d: the last is before %d", cfg.StartBatch,
			end)
	}
	drawer, err := cfg.Drawer(cfg.Workers)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{cfg: cfg, end: end, due: cfg.StartBatch, drawer: drawer, counts: cfg.Counters}
	p.uniqueHeld = mem.NewAccount(cfg.Budget, "nodes of a batch")
	if p.counts == nil {
		p.counts = &Counters{}
	}
	batches, _ := cfg.Batches()
	p.empty = make(chan *Batch, batches)
	if p.rows = cfg.Buffers; p.rows == nil {
		p.rows = cfg.NewBuffers()
	}
	p.rows.Use()
	for range batches {
		b := &Batch{}
		p.all = append(p.all, b)
		p.empty <- b
		p.sampled = append(p.sampled, make(chan *Batch, 1))
		p.ready = append(p.ready, make(chan *Batch, 1))
	}
	p.next.Store(cfg.StartBatch)
	p.since = time.Now()
	p.stages = NewStageGroup(ctx)
	if cfg.Budget != nil {
		p.endRelief = cfg.Budget.Relieve(p.freeIdle)
	}
	for worker := range cfg.Workers {
		p.stages.Start(func() error { return p.sample(worker) })
	}
	p.stages.Start(p.gather)
	return p, nil
}

// Next returns the next batch of the epoch, io.EOF after the last, or the first error of any stage.
// The caller releases the batch, and may hold at most Ready+1 of them at a time, or one with
// InTurn. One goroutine may call it.
func (p *Pipeline) Next(ctx context.Context) (*Batch, error) {
	asked := time.Now()
	p.counts.Stepping.Busy.Add(int64(asked.Sub(p.since)))
	defer func() {
		p.since = time.Now()
		p.counts.Stepping.Starved.Add(int64(p.since.Sub(asked)))
	}()
	if err := p.stages.Err(); err != nil {
		return nil, err
	}
	if p.due == p.end {
		return nil, io.EOF
	}
	select {
	case b := <-p.ready[p.due%uint64(len(p.ready))]:
		p.due++
		p.counts.Stepping.Done.Add(1)
		return p.lend(b)
	case <-p.stages.Done():
		return nil, p.stages.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stats returns the counts so far. It may be called at any time.
func (p *Pipeline) Stats() PipelineStats { return p.counts.Stats(p.cfg.Workers) }

// lend prepares a batch for the consumer, whose Release gives it back.
func (p *Pipeline) lend(b *Batch) (*Batch, error) {
	if !p.rows.Lend(b.rows) {
		return nil, ErrClosed
	}
	p.mu.Lock()
	b.lent = true
	p.mu.Unlock()
	b.Lend(p.recycle)
	return b, nil
}

// sample runs one worker of the first stage.
func (p *Pipeline) sample(worker int) error {
	for {
		b, ok := Receive(p.stages, p.empty, &p.counts.Sampling.Blocked)
		if !ok {
			return nil
		}
		i := p.next.Add(1) - 1
		if i >= p.end {
			p.empty <- b
			p.drawer.Shrink(worker)
			return nil
		}
		b.Epoch, b.Index = p.cfg.Order.Epoch(), i
		if !p.awaitGathered(b) {
			return nil
		}
		begun := time.Now()
		p.working.Add(1)
		err := p.whenRoomy(&p.counts.Sampling, b, worker, func() error { return p.draw(worker, b) })
		if err != nil {
			return err
		}
		p.counts.Nodes.Add(uint64(len(b.Dense.NodeIDs)))
		p.counts.Edges.Add(uint64(len(b.Dense.Nbrs)))
		p.counts.Sampling.Ran(begun)
		p.sampled[i%uint64(len(p.sampled))] <- b
		p.working.Add(-1)
	}
}

// gather runs the second stage: it fills in features and labels, batch by batch.
func (p *Pipeline) gather() error {
	for i := p.cfg.StartBatch; i < p.end; i++ {
		b, ok := Receive(p.stages, p.sampled[i%uint64(len(p.sampled))],
			&p.counts.Gathering.Starved)
		if !ok {
			return nil
		}
		// Idle buffers may be freed until then.
		r, ok := p.rows.Take(p.stages, &p.counts.Gathering.Blocked)
		if !ok {
			return nil
		}
		begun := time.Now()
		p.working.Add(1)
		b.rows = r
		err := p.whenRoomy(&p.counts.Gathering, b, gatherer,
			func() error { return p.fill(b) })
		if err != nil {
			return fmt.Errorf("sample: gather batch %d: %w", i+1, err)
		}
		p.counts.Gathering.Ran(begun)
		p.gathered.Add(1)
		p.ready[i%uint64(len(p.ready))] <- b
		p.working.Add(-1)
	}
	return nil
}

// gatherer is the worker as which the gatherer draws a batch that was given up.
const gatherer = 0

// fill gathers the features and labels of a batch. If the batch was given up, it is drawn again
// first.
func (p *Pipeline) fill(b *Batch) error {
	if len(b.Dense.NodeIDs) == 0 {
		if err := p.draw(gatherer, b); err != nil {
			return err
		}
		p.drawer.Shrink(gatherer) // memory is short
	}
	f := p.cfg.Features
	if p.cfg.FeaturesOf != nil {
		f = p.cfg.FeaturesOf(b)
	}
	switch {
	case f == nil:
	case p.cfg.Split != nil:
		if err := p.gatherPieces(f, b); err != nil {
			return err
		}
	default:
		b.Dim = f.Dim()
		nodes := b.Dense.NodeIDs
		if b.Table = f.Lent(); b.Table != nil {
			nodes = nodes[b.Dense.NodeIDOffsets[1]:]
			b.TableRows = mem.View[uint32](mem.BytesOf(b.Dense.Nbrs))
		}
		n := len(nodes) * b.Dim
		if err := p.rows.Fit(b.rows, int64(n)*4, p.cfg.RowBytes); err != nil {
			return err
		}
		b.X = b.rows.Floats()[:n:n]
		if err := p.gatherRows(f, b, nodes); err != nil {
			return err
		}
	}
	if p.cfg.Labels != nil {
		if err := p.cfg.Labels.Fill(p.stages.Context(), b); err != nil {
			return err
		}
	}
	if err := p.count(b); err != nil || p.cfg.Finish == nil {
		return err
	}
	return p.cfg.Finish(b)
}

// gatherPieces gathers the pieces of the rows of a batch's nodes, and makes them rows.
func (p *Pipeline) gatherPieces(f rowcache.Features, b *Batch) error {
	s, nodes := p.cfg.Split, b.Dense.NodeIDs
	count, lent, n := s.Count(nodes), f.Lent(), s.Floats(len(nodes))
	if p.cfg.Cut {
		n = PieceFloats(s, count, b.Dense.Inner())
	}
	if lent != nil {
		n = b.Dense.Inner() * s.Wide
	}
	err := p.rows.Fit(b.rows, int64(n)*4, p.cfg.RowBytes)
	if err == nil {
		err = resize(&p.uniqueHeld, &p.unique.nodes, count)
	}
	if err != nil {
		return err
	}
	x, pieces := b.rows.Floats()[:n:n], s.Append(nodes, p.unique.nodes[:0])
	switch {
	case lent != nil:
		b.HoldPieces(s, lent, x, func(i int) uint32 { return uint32(pieces[i]) })
		return nil
	case p.cfg.Cut:
		end := max(1, count) * s.Dim
		if err := f.Gather(p.stages.Context(), pieces, x[:count*s.Dim]); err != nil {
			return err
		}
		b.HoldPieces(s, x[:end:end], x[end:], func(i int) uint32 { return uint32(i) })
		return nil
	}
	if err := f.Gather(p.stages.Context(), pieces, s.Packed(x, len(pieces))); err != nil {
		return err
	}
	b.X, b.Dim = s.Unpack(nodes, x, len(pieces)), s.Wide
	return nil
}

// gatherRows gathers the rows of nodes to b.X. A batch as of times may have a node several times,
// and features read each once: its row is gathered for the first place, and copied to the others.
func (p *Pipeline) gatherRows(f rowcache.Features, b *Batch, nodes []NodeID) error {
	ctx := p.stages.Context()
	if len(b.Dense.Times) == 0 {
		return f.Gather(ctx, nodes, b.X)
	}
	u := &p.unique
	if err := errors.Join(resize(&p.uniqueHeld, &u.loc, len(nodes)),
		resize(&p.uniqueHeld, &u.nodes, len(nodes))); err != nil {
		return err
	}
	if u.table == nil {
		u.table = draw.NewNodeTable(&p.uniqueHeld)
	}
	_, err := u.table.Reset(ctx, nil)
	if err == nil {
		u.nodes, err = u.table.Extend(ctx, u.nodes[:0], nodes, u.loc)
	}
	if err == nil {
		err = f.Gather(ctx, u.nodes, b.X[:len(u.nodes)*b.Dim])
	}
	for i := len(nodes) - 1; i >= 0 && err == nil; i-- { // the first place is never behind
		if at := int(u.loc[i]); at != i {
			copy(b.X[i*b.Dim:(i+1)*b.Dim], b.X[at*b.Dim:])
		}
	}
	return err
}

// recycle takes a batch back from the consumer, for the next sample.
func (p *Pipeline) recycle(b *Batch) {
	r := b.rows
	b.forgetRows()
	b.rows = nil
	p.dropPrepared(b)
	if p.rows.Return(r) {
		p.empty <- b
		p.released.Add(1) // last: whoever sees it finds the memory
	}
}

// dropPrepared gives up what was prepared of a batch that comes back from the consumer.
func (p *Pipeline) dropPrepared(b *Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.lent = false
	if p.mu.closed {
		b.Free()
	} else if b.Prepared != nil {
		b.Prepared.Drop()
	}
}

// Close stops the workers, waits for them and frees the memory. Batches that the consumer still
// holds stay valid until their Release. Further calls do nothing.
func (p *Pipeline) Close() error {
	p.stages.Stop(ErrClosed)
	if p.endRelief != nil {
		p.endRelief()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil
	}
	p.mu.closed = true
	p.uniqueHeld.Release()
	if p.cfg.Budget != nil {
		p.cfg.Budget.Release(p.mu.held)
	}
	for _, b := range p.all {
		if !b.lent {
			b.Free()
		}
	}
	if p.cfg.Buffers != nil {
		p.rows.Rest()
		return p.drawer.Close()
	}
	return errors.Join(p.rows.Close(), p.drawer.Close())
}
