package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/neighborcache"
	"gdb/layout/openfiles"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/draw"
	"gdb/sample/partbuffer"
	"gdb/sample/rowcache"
)

// Source holds what batches are made of: the graph of a store, its features and labels, opened as
// memory allows. The caller calls Close.
type Source struct {
	Store  *layout.Store
	Device blockdev.Device
	Meta   *kv.Meta
	Budget *mem.Budget
	Files  *openfiles.Set

	// PackRows reads features as rowfile.Reader.Pack says, and NormalizeRows as
	// rowfile.Reader.NormalizeRows says. They must be set before OpenRows.
	PackRows, NormalizeRows bool
	// Extras say what batches have besides nodes and neighbors.
	sample.Extras
	// Draw is how neighbors are drawn. LayerSize, if set, draws about that many at each hop, for
	// all nodes together, and replaces fanouts: see sample.Config.
	Draw      sample.Draw
	LayerSize []int
	// Before leaves out edges whose time is not below it, for all that reads the graph. Nil takes
	// all edges.
	Before *int64

	// Seeding, if it is not nil, says as of which times lists are read, and Window how much earlier
	// the entries of a list may be; 0 for any: see sample.Config and topology.AsOf.
	Seeding sample.Seeding
	Window  int64

	// Topology is nil while it is not in memory. Graph says how it is opened.
	Topology topology.Reader
	Graph    topology.Options
	// InTurns is set if the topology is in memory only while it is used: see UseGraph.
	InTurns bool

	// Rows are the features, without a cache; nil if the store has none. Where Split is set, they
	// are pieces of rows: see SplitRows.
	Rows  *rowfile.Reader
	Split *rowfile.Split
	whole *rowfile.Reader // what Rows were before they were split; nil if they are not
	// Cut has batches keep pieces, where Rows are pieces: see sample.Batch.TablePieces.
	Cut      bool
	Features rowcache.Features // Rows behind a cache
	// Resident are Features if all rows are in memory, else nil.
	Resident *rowcache.Resident
	// Located are Features if these say where their rows are in memory, else nil.
	Located rowcache.Located
	Labels  *sample.Labels // nil unless opened
	// OnDevice is how many of the hottest nodes have their rows on the training device. Static
	// caches keep the rows of the next ones.
	OnDevice int
	// HotNote says, for the user, why a list of hot nodes was made again or is not kept.
	HotNote string

	staged    *stagedRows // rows read ahead for a static cache; nil if none are
	labelRows *rowfile.Reader
	rowsHeld  int64 // bytes that reading features and labels has taken from the budget

	turn struct {
		sync.Mutex // guards Topology against reading statistics
		past       neighborcache.Stats
	}
	closers []io.Closer // in the order of opening
}

// NewSource returns a source for a store of which nothing is open yet.
func NewSource(store *layout.Store, dev blockdev.Device, budget *mem.Budget) *Source {
	return &Source{Store: store, Device: dev, Meta: store.Meta(), Budget: budget,
		Files: openfiles.New(store, dev, budget)}
}

// CloseLater makes Close close c, before everything that was opened earlier.
func (s *Source) CloseLater(c io.Closer) { s.closers = append(s.closers, c) }

// OpenGraph opens the topology in the given way.
func (s *Source) OpenGraph(ctx context.Context, opt topology.Options) error {
	s.Graph = opt
	if err := s.loadGraph(ctx); err != nil {
		return err
	}
	s.CloseLater(graphCloser{s})
	return nil
}

// PlanGraph says how ChangeGraph and, if the topology takes turns with batches, UseGraph open the
// topology.
func (s *Source) PlanGraph(opt topology.Options, inTurns bool) {
	s.Graph, s.InTurns = opt, inTurns
	s.CloseLater(graphCloser{s})
}

func (s *Source) loadGraph(ctx context.Context) error {
	t, err := s.Files.Topology(ctx, layout.In, s.attributed(s.Graph))
	if err != nil {
		return fmt.Errorf("loader: open topology: %w", err)
	}
	if s.Before != nil {
		t = topology.Before(t, *s.Before, s.Budget)
	}
	if s.Seeding != nil {
		t = topology.AsOf(t, s.Window, s.Budget)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	s.Topology = t
	return nil
}

// EntryBytes returns the bytes that batches keep for each neighbor, besides the neighbor itself.
func (s *Source) EntryBytes() int64 {
	x := s.Extras
	x.EdgeWeights = x.EdgeWeights || s.Draw == sample.DrawWeighted || len(s.LayerSize) > 0
	return x.EntryBytes()
}

// DrawBytes returns the bytes that a sampler takes to draw a neighbor, besides what it keeps. A cut
// at a time takes 12 bytes per entry and 8 per node of a frontier; frontiers have no more nodes
// than the batch has neighbors, except for the seeds. Columns of edges are read of all of a batch.
func (s *Source) DrawBytes() int64 {
	bytes := s.Draw.ChooseBytes()
	if s.Before != nil {
		bytes += 12 + 8
	}
	if s.Columns != nil {
		bytes += edgeColumnsBytes
	}
	return bytes
}

// LayerBytes returns the bytes that a sampler of the source took to draw the layers of its last
// batch. It is 0 if neighbors are drawn node by node.
func (s *Source) LayerBytes(sampler *sample.Sampler) int64 {
	bytes := sampler.LayerBytes()
	if bytes > 0 && s.Before != nil {
		bytes += draw.BeforeBytes
	}
	return bytes
}

// attributed adds to opt which attributes of edges the topology must hold for batches.
func (s *Source) attributed(opt topology.Options) topology.Options {
	opt.Weights = s.EdgeWeights || s.WeightSums || s.Draw == sample.DrawWeighted
	opt.Types = s.EdgeTypes
	opt.Times = s.Draw == sample.DrawLatest || s.Before != nil || s.Seeding != nil
	return opt
}

// Forms returns the forms in which the topology can be held in memory whole, with the attributes
// that batches need, and their sizes.
func (s *Source) Forms() []topology.FormBytes {
	return topology.Forms(s.Store, layout.In, s.attributed(topology.Options{}))
}

// ChangeGraph closes the topology and opens it in another way, unless it is open in this one.
func (s *Source) ChangeGraph(ctx context.Context, opt topology.Options) error {
	if s.Topology != nil && s.Graph == opt {
		return nil
	}
	if err := s.DropGraph(); err != nil {
		return err
	}
	s.Graph = opt
	return s.loadGraph(ctx)
}

// DropGraph closes the topology if it is open.
func (s *Source) DropGraph() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	t := s.Topology
	if s.Topology = nil; t == nil {
		return nil
	}
	st := t.Stats().Neighbors
	s.turn.past.Requests += st.Requests
	s.turn.past.Hits += st.Hits
	s.turn.past.Note = st.Note
	return s.Files.CloseTopology(layout.In)
}

// Neighbors returns the statistics of the neighbor cache, summed over all times that the topology
// was open. It may be called at any time.
func (s *Source) Neighbors() neighborcache.Stats {
	s.turn.Lock()
	defer s.turn.Unlock()
	st := s.turn.past
	if s.Topology != nil {
		now := s.Topology.Stats().Neighbors
		now.Requests, now.Hits = now.Requests+st.Requests, now.Hits+st.Hits
		st = now
	}
	return st
}

// graphCloser closes the topology when the source is closed.
type graphCloser struct{ s *Source }

func (g graphCloser) Close() error { return g.s.DropGraph() }

// UseGraph opens the topology if it takes turns with batches. The caller calls release when it is
// done. There may be one use at a time.
func (s *Source) UseGraph(ctx context.Context) (release func() error, err error) {
	if !s.InTurns {
		return func() error { return nil }, nil
	}
	if s.Topology == nil {
		if err := s.loadGraph(ctx); err != nil {
			return nil, err
		}
	}
	return s.DropGraph, nil
}

// UseLists does what UseGraph does for passes over lists, which take room bytes besides: where
// these do not fit beside the lists as planned, lists are read in blocks.
func (s *Source) UseLists(ctx context.Context, room int64) (release func() error, err error) {
	was := s.Graph
	if s.InTurns && s.Topology == nil && was.Resident {
		for _, f := range s.Forms() {
			isPlanned := f.Form == cmp.Or(was.Form, topology.Plain)
			if isPlanned && f.Bytes+room > s.Budget.Limit()-s.Budget.Used() {
				s.Graph = topology.Options{CacheBytes: passCacheBytes, Budget: was.Budget}
			}
		}
	}
	release, err = s.UseGraph(ctx)
	s.Graph = was
	return release, err
}

// passCacheBytes is the cache of blocks of UseLists.
const passCacheBytes = 8 << 20

// Sampler returns a new sampler of the topology with the fanouts, seed and places of c. Fanouts are
// ignored if there are layer sizes.
func (s *Source) Sampler(c *Config) (*sample.Sampler, error) { return s.samplerOf(s.Topology, c) }

func (s *Source) samplerOf(t topology.Reader, of *Config) (*sample.Sampler, error) {
	c := sample.Config{Fanout: of.Fanout, ByRelation: of.ByRelation, LayerSize: s.LayerSize,
		Seed: of.Seed, Draw: s.Draw, Extras: s.extras(of), Seeding: s.Seeding, Budget: s.Budget}
	if b, ok := t.(*partbuffer.Buffer); ok {
		c.Last = b.Inner()
	}
	return sample.NewSampler([]topology.Reader{t}, c)
}

// OpenRows opens the file of features, without a cache. It does nothing if the store has none.
func (s *Source) OpenRows(ctx context.Context) error {
	if len(s.Meta.Features) == 0 {
		return nil
	}
	before := s.Budget.Used()
	rows, err := s.Files.Rows(ctx, s.Meta.Features[0])
	if err != nil {
		return fmt.Errorf("loader: open features: %w", err)
	}
	if s.NormalizeRows && s.Rows == nil {
		rows.NormalizeRows()
	}
	if s.PackRows {
		rows.Pack()
	}
	s.Rows = rows
	s.rowsHeld += s.Budget.Used() - before
	return nil
}

// SplitRows has what reads and keeps features do that by pieces of rows, if types have rows of very
// different widths. Batches get whole rows, or with Cut the pieces. It does nothing to rows that
// are not plain, and must be called before features are opened; batches have no times.
func (s *Source) SplitRows() {
	if s.Rows == nil || s.Split != nil || !s.Rows.Plain() {
		return
	}
	if s.Split = rowfile.NewSplit(s.Rows.Meta(), s.Meta.Nodes); s.Split != nil {
		s.whole = s.Rows
		s.Rows = s.Rows.Split(s.Split)
	}
}

// WholeRows returns the features by whole rows, also where Rows are pieces; nil if the store has
// none.
func (s *Source) WholeRows() *rowfile.Reader {
	if s.Split != nil {
		return s.whole
	}
	return s.Rows
}

// RowCount returns how many rows Rows has.
func (s *Source) RowCount() uint64 {
	if s.Split != nil {
		return s.Split.Rows
	}
	return s.Meta.Nodes
}

// AnyRows returns the features, or else the labels, to measure how fast the device reads rows. It
// returns nil if neither is open.
func (s *Source) AnyRows() *rowfile.Reader {
	if s.Rows != nil {
		return s.Rows
	}
	return s.labelRows
}

// OpenLabels opens the labels, which the store must have.
func (s *Source) OpenLabels(ctx context.Context) error {
	before := s.Budget.Used()
	rows, err := s.Files.Rows(ctx, s.Meta.Labels.Rows)
	if err != nil {
		return fmt.Errorf("loader: open labels: %w", err)
	}
	s.labelRows = rows
	s.rowsHeld += s.Budget.Used() - before
	s.Labels, err = sample.NewLabels(ctx, s.Meta.Labels, rows, s.Meta.Nodes, s.Budget)
	if err != nil {
		return fmt.Errorf("loader: open labels: %w", err)
	}
	s.CloseLater(s.Labels)
	return nil
}

// ProgramBytes returns the memory of the program, of all that was reserved so far, and of reading
// features and labels, whose buffers are made only when they are needed.
func (s *Source) ProgramBytes() int64 {
	features, labels, room := int64(0), int64(0), s.Budget.Limit()-s.Budget.Used()
	switch {
	case s.Rows != nil:
		features = s.Rows.MostBytes()
	case len(s.Meta.Features) > 0:
		features = rowfile.MostBytes(s.Store, s.Meta.Features[0], room)
	}
	switch {
	case s.labelRows != nil:
		labels = s.labelRows.MostBytes()
	case s.Meta.Labels != nil && s.Meta.Labels.Rows.Path != "": // else in memory
		labels = rowfile.MostBytes(s.Store, s.Meta.Labels.Rows, room)
	}
	return mem.ProcessBytes + s.Budget.Used() + max(0, features+labels-s.rowsHeld)
}

// Close closes everything, in the reverse order of opening.
func (s *Source) Close() error {
	var err error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		c := s.closers[last]
		s.closers = s.closers[:last]
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, s.Files.Close())
}
