package link

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/program"
	"gdb/internal/rng"
	"gdb/internal/spelling"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/kernel"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// Limits bound what evaluation and prediction take.
type Limits struct {
	// Memory bounds the process in bytes, and Threads is the number of compute workers; 0 takes
	// half of what the machine allows, and all cores.
	Memory  int64
	Threads int
}

// Trained is a run that was opened to evaluate it or to predict: the rows of its best evaluation.
// It is for one goroutine.
type Trained struct {
	Config Config
	// Epoch is that of the best evaluation.
	Epoch int

	run    string
	store  *layout.Store
	budget *mem.Budget
	model  *model
	scorer *rank.Scorer
	data   *data
}

// Open opens a run of a store. The caller closes it.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	lim Limits) (*Trained, error) {
	dir := runs.Open(store, run)
	f, err := dir.ReadLink()
	if err != nil {
		return nil, err
	}
	t := &Trained{Config: *f.Link, run: run, store: store}
	if t.Config.Memory = lim.Memory; lim.Memory == 0 {
		t.Config.Memory = mem.Available() / 2
	}
	if t.Config.Threads = lim.Threads; lim.Threads == 0 {
		t.Config.Threads = runtime.NumCPU()
	}
	t.budget = mem.NewProcessBudget(t.Config.Memory)
	reading := t.Config
	reading.Negatives, reading.FilterNegatives = 1, false // nothing is trained
	if t.data, err = readData(ctx, store, dev, &reading, t.budget); err != nil {
		return nil, err
	}
	t.model, err = newModel(&t.Config, t.data.entities, t.data.relations, false, t.budget)
	if err != nil {
		return nil, err
	}
	if err := t.load(dir); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.scorer = t.model.scorer(kernel.NewPool(t.Config.Threads))
	return t, nil
}

// load reads the best rows.
func (t *Trained) load(dir runs.Dir) error {
	entities, relations := t.model.entities, t.model.relations
	values := len(entities.Values) + len(relations.Values)
	arrays := int64(4 * values * (2 + len(stateNames(t.Config.Optimizer))))
	if err := t.budget.Reserve("a checkpoint", 2*arrays); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer t.budget.Release(2 * arrays)
	var pos position
	all, _, err := readState(dir, &pos, int(arrays/4))
	if err != nil {
		return err
	}
	names := []string{runs.BestEntitiesName, runs.BestRelationsName}
	if t.Epoch = pos.BestEpoch; !pos.HasBest {
		names, t.Epoch = []string{runs.EntitiesName, runs.RelationsName}, int(pos.Epoch)
	}
	for i, to := range []*Table{entities, relations} {
		from, err := runs.FindArray(all, names[i], len(to.Values))
		if err != nil {
			return err
		}
		copy(to.Values, from)
	}
	return nil
}

// Close frees the memory.
func (t *Trained) Close() error { return t.model.Close() }

// Evaluation is how a run ranks the edges of a split.
type Evaluation struct {
	*rank.Result
	// Of graphs without relations: the edges beside as many random pairs that are none.
	AUC    *float64        `json:"auc,omitempty"`
	HitsAt map[int]float64 `json:"-"` // by the number of pairs that may score higher
}

// hitsAmong are the numbers of pairs of Evaluation.HitsAt.
var hitsAmong = []int{20, 50, 100}

// Evaluate ranks the edges of train, val or test among all entities, or so many.
func (t *Trained) Evaluate(ctx context.Context, split string, candidates int) (*Evaluation, error) {
	edges, err := t.split(split)
	if err != nil {
		return nil, err
	}
	if err := t.budget.Reserve("an evaluation", rank.Bytes(t.Config.Dim)); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	defer t.budget.Release(rank.Bytes(t.Config.Dim))
	res, err := rank.Ranks(ctx, t.scorer, edges, rank.Config{Known: t.data.known,
		Candidates: candidates, Seed: t.Config.Seed})
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
		t.classify(e, edges)
	}
	return e, nil
}

// split are the edges of one.
func (t *Trained) split(name string) ([]triples.Triple, error) {
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

// pairDomain keeps the draws of pairs apart from others.
const pairDomain = 0x70616972 // "pair"

// classify scores edges beside random pairs.
func (t *Trained) classify(e *Evaluation, edges []triples.Triple) {
	draw := rng.NewStream(rng.Key(pairDomain, t.Config.Seed))
	pairs, n := make([]triples.Triple, 0, len(edges)), uint64(t.data.entities)
	for tries := 0; len(pairs) < len(edges) && tries < 100*len(edges); tries++ {
		p := triples.Triple{Head: uint32(draw.Below(n)), Tail: uint32(draw.Below(n))}
		if p.Head != p.Tail && !t.data.known.Has(p) {
			pairs = append(pairs, p)
		}
	}
	if len(pairs) == 0 { // every pair is an edge
		return
	}
	own, others := make([]float32, len(edges)), make([]float32, len(pairs))
	t.scorer.Pairs(own, edges)
	t.scorer.Pairs(others, pairs)
	auc := rank.AUC(own, others)
	e.AUC, e.HitsAt = &auc, map[int]float64{}
	for _, k := range hitsAmong {
		e.HitsAt[k] = rank.HitsAt(own, others, k)
	}
}

// Relation is the number of a relation by its name, which may be "" if there is but one.
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
	if near := spelling.Nearest(name, types); near != "" {
		return 0, fmt.Errorf("train: there is no relation %q; did you mean %s?", name, near)
	}
	return 0, fmt.Errorf("train: there is no relation %q; %s info lists them", name,
		program.Name)
}

// Link is an edge that was predicted. Known says that some split has it.
type Link struct {
	Head, Tail kv.NodeID
	Score      float32
	Known      bool
}

// Top returns the n edges that score best of those with a known end and a relation, or only those
// that no split has.
func (t *Trained) Top(q triples.Query, n int, onlyNew bool) []Link {
	known := t.data.known
	if !onlyNew {
		known = nil
	}
	var out []Link
	for _, a := range rank.Top(t.scorer, q, n, known) {
		l := Link{Head: kv.NodeID(q.Entity), Tail: kv.NodeID(a.Entity), Score: a.Score}
		if q.Head {
			l.Head, l.Tail = l.Tail, l.Head
		}
		l.Known = t.data.known.Has(triples.Triple{Head: uint32(l.Head), Relation: q.Relation,
			Tail: uint32(l.Tail)})
		out = append(out, l)
	}
	return out
}

// Scores scores edges.
func (t *Trained) Scores(edges []triples.Triple) []float32 {
	out := make([]float32, len(edges))
	t.scorer.Pairs(out, edges)
	return out
}
