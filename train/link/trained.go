package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/paged"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/runs/vectors"
	"gdb/train/setting"
)

// Limits bound what an opened run takes. 0 takes half of what the machine allows, and all cores.
type Limits struct {
	Memory  int64 // bounds the process, in bytes
	Threads int   // the number of compute workers
	// Where says where edges are ranked; nil is with the threads of the process.
	Where *setting.Where
}

// Trained is a run that was opened to evaluate it or to predict with the rows of its best
// evaluation. It may be used by one goroutine.
type Trained struct {
	Config Config
	// Epoch is the epoch of the best evaluation.
	Epoch int
	// Note is a remark for the user; "" for none.
	Note string

	run     string
	store   *layout.Store
	dev     blockdev.Device
	budget  *mem.Budget
	data    *data
	vectors *vectors.Vectors
	known   entities.Known // the edges of all splits
	closers []io.Closer
	// on ranks on a device, which has all vectors there if it has the room; both may be unset.
	on    backend.Backend
	there backend.Tensor
}

// Open opens a run of a store. Vectors that do not fit in memory are read as they are needed. The
// caller closes it.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	lim Limits) (*Trained, error) {
	f, err := runs.Open(store, run).ReadLink()
	if err != nil {
		return nil, err
	}
	t := &Trained{Config: *f.Link, run: run, store: store, dev: dev}
	if t.Config.Memory = lim.Memory; lim.Memory == 0 {
		t.Config.Memory = mem.Available() / 2
	}
	if t.Config.Threads = lim.Threads; lim.Threads == 0 {
		t.Config.Threads = runtime.NumCPU()
	}
	t.Config.Backend = backend.CPU
	if w := lim.Where; w != nil {
		t.Config.Backend = f.Link.Backend
		w.Apply(&t.Config.Computing)
		t.Config.Backend = cuda.Chosen(t.Config.Backend, t.Config.Device)
	}
	t.budget = mem.NewProcessBudget(t.Config.Memory)
	fits := !t.Config.ScoredOnDisk() && heldBytes(&t.Config, store.Meta()) <= t.budget.Limit()
	if err := t.open(ctx, t.budget, fits, storedRows(t.Config.Dim)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.openDevice(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// open reads the edges and opens the vectors: all to memory or, unless fits is set, some edges and
// blocks of blockRows rows. budget counts the vectors.
func (t *Trained) open(ctx context.Context, budget *mem.Budget, fits bool,
	blockRows int) (err error) {
	read, reading := readEvaluated, t.Config
	if reading.Negatives, reading.FilterNegatives = 1, false; fits { // nothing is trained
		read = readData
	}
	if t.data, err = read(ctx, t.store, t.dev, &reading, t.budget); err != nil {
		return err
	}
	t.vectors, err = vectors.OpenAs(ctx, t.store, t.dev, t.run, vectors.Config{Loaded: fits,
		BlockRows: blockRows, Frames: 2, Budget: budget, Workers: t.Config.Threads})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.vectors)
	t.Epoch, t.Note = t.vectors.Epoch, t.vectors.Note
	if what := t.vectors.Sets.Replaced(runs.EdgeSets(t.store.Meta())); what != "" && t.Note == "" {
		t.Note = runs.OtherSetsNote(t.run, what)
	}
	if fits {
		t.known = entities.Indexed{Index: t.data.known}
		return nil
	}
	return t.findKnown(ctx, budget)
}

// findKnown opens known edges that are read when they are asked for.
func (t *Trained) findKnown(ctx context.Context, budget *mem.Budget) error {
	others := [][]triples.Triple{t.data.val, t.data.test}
	if !t.Config.ScoredOnDisk() {
		known, err := entities.Streamed(t.vectors.Table, t.store, t.dev, others, budget)
		if err == nil {
			t.known, t.closers = known, append(t.closers, known)
		}
		return err
	}
	plan := &paged.Plan{Order: partition.OrderSpec{Parts: t.Config.Partitions,
		Seed: t.Config.Seed}}
	sets, note, err := paged.OpenBuckets(ctx, &paged.Config{Store: t.store, Device: t.dev,
		Plan: plan, Budget: budget})
	if err != nil {
		return err
	}
	if t.Note == "" {
		t.Note = note
	}
	known := entities.Bucketed(t.vectors.Table, sets, others, budget)
	t.known, t.closers = known, append(t.closers, sets, known)
	return nil
}

// heldBytes returns what a run takes that is opened with all vectors and edges in memory.
func heldBytes(c *Config, m *kv.Meta) int64 {
	edges := int64(m.SplitEdges())
	return mem.ArenaBytes(4*int64(m.Nodes)*int64(c.Dim)) + mem.HeapCost(12*edges+
		triples.Bytes(2*edges)+rank.Bytes(c.Dim))
}

// blockBytes is about what a block takes of vectors that are read from a checkpoint.
const blockBytes = 8 << 20

// storedRows returns how many rows such a block has.
func storedRows(dim int) int {
	return rank.BlockRows * max(1, blockBytes/(4*dim*rank.BlockRows))
}

// Close frees the memory.
func (t *Trained) Close() (err error) {
	for _, c := range slices.Backward(t.closers) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Evaluation says how a run ranks the edges of a split.
type Evaluation struct {
	*rank.Result
	// AUC and HitsAt are for graphs without relations. They compare the edges with as many random
	// pairs that are no edges.
	AUC    *float64        `json:"auc,omitempty"`
	HitsAt map[int]float64 `json:"-"` // by the number of pairs that may score higher
}

// hitsAmong lists the numbers of pairs of Evaluation.HitsAt.
var hitsAmong = []int{20, 50, 100}

// Evaluate ranks the edges of train, val or test among all entities, or among a number
// of candidates.
func (t *Trained) Evaluate(ctx context.Context, split string, candidates int) (*Evaluation, error) {
	edges, err := t.split(ctx, split)
	if err != nil {
		return nil, err
	}
	if err := t.budget.Reserve("an evaluation", rank.Bytes(t.Config.Dim)); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	defer t.budget.Release(rank.Bytes(t.Config.Dim))
	res, err := t.ranks(ctx, edges, candidates)
	if err != nil {
		return nil, fmt.Errorf("train: evaluate run %s: %w", t.run, err)
	}
	types := t.store.Meta().EdgeTypes
	for i := range res.Relations {
		if r := &res.Relations[i]; int(r.Relation) < len(types) {
			r.Name = types[r.Relation]
		}
	}
	e := &Evaluation{Result: res}
	if t.data.relations == 1 {
		res.Relations = nil
		return e, t.classify(ctx, e, edges)
	}
	return e, nil
}

// ranks ranks edges among all entities, or among a number of candidates.
func (t *Trained) ranks(ctx context.Context, edges []triples.Triple, candidates int) (*rank.Result,
	error) {
	s := *t.vectors.Scorer()
	s.On, s.Rows = t.on, t.there
	return rank.Ranks(ctx, &s, t.vectors.Table, edges, rank.Config{Known: t.known,
		Candidates: candidates, Seed: t.Config.Seed, PassBytes: t.known.PassBytes()})
}

// split returns the edges of a split.
func (t *Trained) split(ctx context.Context, name string) ([]triples.Triple, error) {
	if name == "train" && t.data.train == nil {
		err := t.budget.Reserve("edges to evaluate", evaluatedBytes*int64(t.data.edges))
		if err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		if t.data.train, err = readSplit(ctx, t.store, t.dev, name); err != nil {
			return nil, err
		}
	}
	all := map[string][]triples.Triple{"train": t.data.train, "val": t.data.val,
		"valid": t.data.val, "test": t.data.test}
	edges, known := all[name]
	switch {
	case !known:
		return nil, fmt.Errorf("train: there is no split %q of edges: want train, val or test",
			name)
	case len(edges) == 0:
		return nil, fmt.Errorf("train: the split %s has no edges: %w", name, rank.ErrNothing)
	}
	return edges, nil
}

// spans returns which entities may be the heads, and which the tails, of the only relation.
func (t *Trained) spans() (heads, tails rank.Span) {
	of := t.vectors.Scorer()
	return of.Span(triples.Query{Head: true}, t.data.entities),
		of.Span(triples.Query{}, t.data.entities)
}

// pairDomain separates the random keys of pairs from others.
const pairDomain = 0x70616972 // "pair"

// classify scores edges beside random pairs.
func (t *Trained) classify(ctx context.Context, e *Evaluation, edges []triples.Triple) error {
	draw := rng.NewStream(rng.Key(pairDomain, t.Config.Seed))
	pairs := make([]triples.Triple, 0, len(edges))
	heads, tails := t.spans()
	for tries := 0; len(pairs) < len(edges) && tries < 100*len(edges); tries++ {
		p := triples.Triple{Head: heads.At(&draw), Tail: tails.At(&draw)}
		if p.Head != p.Tail && (t.data.known == nil || !t.data.known.Has(p)) {
			pairs = append(pairs, p)
		}
	}
	pairs, err := t.known.Without(ctx, pairs)
	if err != nil {
		return err
	}
	if len(pairs) == 0 { // every pair is an edge
		return nil
	}
	own, err := t.Scores(ctx, edges)
	if err != nil {
		return err
	}
	others, err := t.Scores(ctx, pairs)
	if err != nil {
		return err
	}
	auc := rank.AUC(own, others)
	e.AUC, e.HitsAt = &auc, map[int]float64{}
	for _, k := range hitsAmong {
		e.HitsAt[k] = rank.HitsAt(own, others, k)
	}
	return nil
}

// Relation returns the number of a relation by its name, which may be "" if there is only one.
func (t *Trained) Relation(name string) (uint32, error) {
	types := t.store.Meta().EdgeTypes
	if i := slices.Index(types, name); i >= 0 {
		return uint32(i), nil
	}
	switch {
	case len(types) <= 1 && name == "":
		return 0, nil
	case len(types) == 0:
		return 0, fmt.Errorf("train: the edges have no relations: leave %q out", name)
	case name == "":
		return 0, fmt.Errorf("train: the edges have %d relations: name one", len(types))
	}
	if near := message.Nearest(name, types); near != "" {
		return 0, fmt.Errorf("train: there is no relation %q; did you mean %s?", name, near)
	}
	return 0, fmt.Errorf("train: there is no relation %q; %s info lists them", name,
		message.Program)
}

// Link is an edge that was predicted. Known says that some split has it.
type Link struct {
	Head, Tail kv.NodeID
	Score      float32
	Known      bool
}

// Top returns the n edges that score best among those with a known end and a relation. With onlyNew
// it returns only edges that no split has.
func (t *Trained) Top(ctx context.Context, q triples.Query, n int, onlyNew bool) ([]Link, error) {
	known, err := t.known.Answers(ctx, q)
	if err != nil {
		return nil, err
	}
	skip := known
	if !onlyNew {
		skip = nil
	}
	best, err := rank.Top(ctx, t.vectors.Scorer(), t.vectors.Table, q, n, skip)
	var out []Link
	for _, a := range best {
		l := Link{Head: kv.NodeID(q.Entity), Tail: kv.NodeID(a.Entity), Score: a.Score}
		if q.Head {
			l.Head, l.Tail = l.Tail, l.Head
		}
		_, l.Known = slices.BinarySearch(known, a.Entity)
		out = append(out, l)
	}
	return out, err
}

// Scores returns the scores of edges. With vectors on disk it goes through the partitions that
// have their ends.
func (t *Trained) Scores(ctx context.Context, edges []triples.Triple) ([]float32, error) {
	out := make([]float32, len(edges))
	return out, rank.Pairs(ctx, t.vectors.Scorer(), t.vectors.Table, out, edges,
		t.known.PassBytes())
}
