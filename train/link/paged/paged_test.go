package paged_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/layouttest"
	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/paged"
	"gdb/train/link/rank"
	"gdb/train/link/triples"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	entityCount, relations = 130, 3
	dim, state             = 3, 1
	trainEdges             = 900
	dirPath                = "partitions"
)

// fixture is a store of train edges, and a plan for its vectors.
type fixture struct {
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
	plan   *paged.Plan
	train  []triples.Triple
}

// newFixture plans for 8 partitions by what is wanted besides.
func newFixture(t *testing.T, want paged.Want) *fixture {
	t.Helper()
	f := &fixture{dev: layouttest.Device(t), budget: mem.NewBudget(128 << 20),
		train: randomEdges(1, trainEdges)}
	f.store = mustStore(t, f.train)
	want.Parts, want.Dim, want.State, want.Memory = 8, dim, state, 64<<20
	var err error
	if f.plan, err = paged.NewPlan(f.store.Meta(), want); err != nil {
		t.Fatal(err)
	}
	f.plan.EdgesOnce = 50 // so that sets have several parts
	return f
}

func randomEdges(seed uint64, n int) (edges []triples.Triple) {
	r := rand.New(rand.NewPCG(seed, 7))
	for range n {
		edges = append(edges, triples.Triple{Head: r.Uint32N(entityCount),
			Relation: r.Uint32N(relations), Tail: r.Uint32N(entityCount)})
	}
	return edges
}

// mustStore writes a store that is nothing but train edges.
func mustStore(t *testing.T, edges []triples.Triple) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	m := &kv.Meta{UUID: kv.UUID{3, 1}, Nodes: entityCount, EdgeTypes: make([]string, relations),
		EdgeSplits: []kv.EdgeSplitMeta{{Name: "val", Count: 7},
			{Name: "train", Count: uint64(len(edges))}}}
	if err := fs.MkdirAll("s/edges", 0o755); err != nil {
		t.Fatal(err)
	}
	path := edgefile.Path("train")
	out, err := layout.CreateFile(fs, "s/"+path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := edgefile.NewWriter(out, edgefile.SpecOf(m, edgefile.Kind("train")), nil)
	for _, e := range edges {
		if err == nil {
			err = w.Add(e.Head, e.Tail, uint16(e.Relation))
		}
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := out.Finish(path, edgefile.Kind("train"))
	if err != nil {
		t.Fatal(err)
	}
	m.Files = []kv.FileMeta{file}
	return layout.NewStore(fs, "s", m)
}

// initRow is what entities begin with.
func initRow(row []float32, entity uint64) {
	for i := range row {
		row[i] = float32(entity) + float32(i)/8
	}
}

func (f *fixture) config() paged.Config {
	return paged.Config{Store: f.store, Device: f.dev, Path: dirPath, Plan: f.plan, Init: initRow,
		Budget: f.budget}
}

func (f *fixture) mustOpen(t *testing.T, record, best []byte) *paged.Source {
	t.Helper()
	s, _, err := paged.Open(t.Context(), f.config(), record, best)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// model is what vectors and the optimizer's state should be, by entity.
type model struct{ rows, state [entityCount][dim]float32 }

func newModel() *model {
	m := &model{}
	for e := range m.rows {
		initRow(m.rows[e][:], uint64(e))
	}
	return m
}

// train compares the rows of a part with the model, and changes some.
func (m *model) train(t *testing.T, f *fixture, s *paged.Source, p *triples.Part, r *rand.Rand) {
	t.Helper()
	parts, err := f.plan.Map(f.store.Meta())
	if err != nil {
		t.Fatal(err)
	}
	arrays := s.Arrays()
	for i, part := range p.Set {
		if uint64(p.Spans[i].Count) != parts.Size(part) || p.Spans[i].Row != s.First(part) {
			t.Fatalf("partition %d of %d rows has span %+v, and begins at %d", part,
				parts.Size(part), p.Spans[i], s.First(part))
		}
		for row := range p.Spans[i].Count {
			e := parts.Node(part, uint64(row))
			at := int(p.Spans[i].Row+row) * dim
			x, y := arrays[0][at:at+dim], arrays[1][at:at+dim]
			if !slices.Equal(x, m.rows[e][:]) || !slices.Equal(y, m.state[e][:]) {
				t.Fatalf("entity %d has %v and %v, want %v and %v", e, x, y, m.rows[e], m.state[e])
			}
			if r.IntN(3) == 0 {
				x[0], y[1] = x[0]+r.Float32(), y[1]+1
				copy(m.rows[e][:], x)
				copy(m.state[e][:], y)
			}
		}
	}
	s.Touch()
}

// edgesOf are the edges of a part, with entities in the place of rows.
func (f *fixture) edgesOf(t *testing.T, p *triples.Part) (edges []triples.Triple) {
	t.Helper()
	parts, err := f.plan.Map(f.store.Meta())
	if err != nil {
		t.Fatal(err)
	}
	entity := func(row uint32) uint32 {
		for i, span := range p.Spans {
			if row >= span.Row && row < span.Row+span.Count {
				return uint32(parts.Node(p.Set[i], uint64(row-span.Row)))
			}
		}
		t.Fatalf("row %d is in none of %v", row, p.Spans)
		return 0
	}
	for _, e := range p.Edges {
		edges = append(edges, triples.Triple{Head: entity(e.Head), Relation: e.Relation,
			Tail: entity(e.Tail)})
	}
	return edges
}

// checkRows asks a part for the row of each node.
func (f *fixture) checkRows(t *testing.T, p *triples.Part) {
	t.Helper()
	parts, err := f.plan.Map(f.store.Meta())
	if err != nil {
		t.Fatal(err)
	}
	for node := range uint32(f.store.Meta().Nodes) {
		part, at := parts.Place(kv.NodeID(node))
		i := slices.Index(p.Set, part)
		row, ok := p.RowOf(node)
		if ok != (i >= 0) || ok && row != p.Spans[i].Row+uint32(at) {
			t.Fatalf("node %d, row %d of partition %d, is said to be row %d: %v", node, at, part,
				row, ok)
		}
	}
}

func sorted(edges []triples.Triple) []triples.Triple {
	edges = slices.Clone(edges)
	slices.SortFunc(edges, func(a, b triples.Triple) int {
		return slices.Compare([]uint32{a.Head, a.Relation, a.Tail},
			[]uint32{b.Head, b.Relation, b.Tail})
	})
	return edges
}

// gathered are the rows of all entities, in an order that is not that of partitions.
func gathered(t *testing.T, r *paged.Rows) (rows [entityCount][dim]float32) {
	t.Helper()
	order := rand.New(rand.NewPCG(4, 4)).Perm(entityCount)
	asked, to := make([]uint32, entityCount), make([]float32, entityCount*dim)
	for i, e := range order {
		asked[i] = uint32(e)
	}
	if err := r.Gather(t.Context(), to, asked); err != nil {
		t.Fatal(err)
	}
	for i, e := range order {
		copy(rows[e][:], to[i*dim:])
	}
	return rows
}

func mustCheckpoint(t *testing.T, s *paged.Source) (record, best []byte) {
	t.Helper()
	record, best, err := s.Prepare(t.Context())
	if err = errors.Join(err, s.Committed()); err != nil {
		t.Fatal(err)
	}
	return record, best
}

// policies are what trainings of links go by.
var policies = map[string]paged.Want{
	"two levels": {Policy: partition.TwoLevel, Capacity: 4, Logical: 4},
	"beta":       {Policy: partition.Beta, Capacity: 3},
	"in memory":  {Capacity: 8, Logical: 1},
}

// TestEpochs goes through epochs: each has all edges once, in parts of no more than was planned;
// rows are what they were changed to, in the buffer, behind a checkpoint and read by partition; and
// the files take no more than was said.
func TestEpochs(t *testing.T) {
	for name, want := range policies {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, want)
			s := f.mustOpen(t, nil, nil)
			m, r := newModel(), rand.New(rand.NewPCG(5, 5))
			most, err := f.plan.DiskBytes(f.store.Meta())
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range uint64(3) {
				var seen []triples.Triple
				for part := range s.Parts(epoch) {
					if s.CheckpointFirst(epoch, part) {
						mustCheckpoint(t, s)
					}
					p, err := s.Load(t.Context(), epoch, part)
					if err != nil {
						t.Fatal(err)
					}
					if len(p.Edges) > f.plan.EdgesOnce {
						t.Fatalf("a part has %d edges, planned were %d", len(p.Edges),
							f.plan.EdgesOnce)
					}
					seen = append(seen, f.edgesOf(t, p)...)
					f.checkRows(t, p)
					m.train(t, f, s, p, r)
					if n := f.diskBytes(t); n > most {
						t.Fatalf("the files take %d bytes, said were %d", n, most)
					}
				}
				if !slices.Equal(sorted(seen), sorted(f.train)) {
					t.Fatalf("epoch %d has %d edges, and not the %d of train", epoch, len(seen),
						len(f.train))
				}
				if s.Sets(epoch) > s.Parts(epoch) || s.Buckets().Edges() != trainEdges {
					t.Fatalf("%d sets in %d parts of %d edges", s.Sets(epoch), s.Parts(epoch),
						s.Buckets().Edges())
				}
			}
			f.checkEnd(t, s, m)
		})
	}
}

// checkEnd compares what was trained with the model: read by the source, after a checkpoint by
// another one, and by Rows alone.
func (f *fixture) checkEnd(t *testing.T, s *paged.Source, m *model) {
	t.Helper()
	rows, err := s.Rows(t.Context(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if gathered(t, rows) != m.rows {
		t.Error("rows read by partition are not those that were trained")
	}
	record, best := mustCheckpoint(t, s)
	if err := errors.Join(rows.Close(), s.Close()); err != nil || f.budget.Used() != 0 {
		t.Fatalf("closed, %d bytes are held: %v", f.budget.Used(), err)
	}
	s = f.mustOpen(t, record, best)
	for part := range s.Parts(9) {
		p, err := s.Load(t.Context(), 9, part)
		if err != nil {
			t.Fatal(err)
		}
		m.train(t, f, s, p, rand.New(rand.NewPCG(1, uint64(part))))
	}
	record, _ = mustCheckpoint(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rows := f.mustRows(t, record, nil); gathered(t, rows) != m.rows {
		t.Error("rows of the checkpoint are not those that were trained")
	}
}

// diskBytes is what the files of partitions take.
func (f *fixture) diskBytes(t *testing.T) (n int64) {
	t.Helper()
	names, err := f.store.FS().List(dirPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := f.store.FS().Stat(dirPath + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// mustRows opens the vectors of a record until the test ends.
func (f *fixture) mustRows(t *testing.T, record []byte, others [][]triples.Triple) *paged.Rows {
	t.Helper()
	r, sets, err := f.openRows(t, record, others)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), sets.Close()); err != nil || f.budget.Used() != 0 {
			t.Errorf("closed, %d bytes are held: %v", f.budget.Used(), err)
		}
	})
	return r
}

// openRows opens the vectors of a record, two partitions at a time, and the edges by bucket.
func (f *fixture) openRows(t *testing.T, record []byte, others [][]triples.Triple) (*paged.Rows,
	*partition.Buckets, error) {
	t.Helper()
	cfg := f.config()
	m, err := cfg.Plan.Map(cfg.Store.Meta())
	if err != nil {
		t.Fatal(err)
	}
	files, err := entities.ViewFiles(cfg.Store.FS(), cfg.Path, cfg.Device, entities.FileSpec{
		UUID: cfg.Store.Meta().UUID, Map: m, Columns: dim, State: state, Init: cfg.Init}, record)
	if err != nil {
		return nil, nil, err
	}
	sets, _, err := paged.OpenBuckets(t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	table, err := entities.Paged(files, entities.Memory{Frames: 2, Budget: cfg.Budget}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &paged.Rows{Table: table, OnDisk: entities.Bucketed(table, sets, others, cfg.Budget)},
		sets, nil
}

// TestPartsAgain: a part has the same edges whichever was loaded before it.
func TestPartsAgain(t *testing.T) {
	f := newFixture(t, policies["two levels"])
	s := f.mustOpen(t, nil, nil)
	defer func() { _ = s.Close() }()
	const epochs = 2
	var want [epochs][][]triples.Triple
	load := func(epoch, part int) []triples.Triple {
		p, err := s.Load(t.Context(), uint64(epoch), part)
		if err != nil {
			t.Fatal(err)
		}
		return f.edgesOf(t, p)
	}
	for epoch := range epochs {
		for part := range s.Parts(uint64(epoch)) {
			want[epoch] = append(want[epoch], load(epoch, part))
		}
	}
	r := rand.New(rand.NewPCG(2, 6))
	for range 60 {
		epoch := r.IntN(epochs)
		part := r.IntN(len(want[epoch]))
		if !slices.Equal(load(epoch, part), want[epoch][part]) {
			t.Fatalf("part %d of epoch %d has other edges", part, epoch)
		}
	}
}

// TestBest: the vectors of the best evaluation stay what they were while others are trained, in
// this process and in the next; what was trained after the last checkpoint is lost.
func TestBest(t *testing.T) {
	f := newFixture(t, policies["two levels"])
	s := f.mustOpen(t, nil, nil)
	m, r := newModel(), rand.New(rand.NewPCG(8, 2))
	var best [entityCount][dim]float32
	var record, bestRecord []byte
	for epoch := range uint64(3) {
		for part := range s.Parts(epoch) {
			if s.CheckpointFirst(epoch, part) {
				mustCheckpoint(t, s)
			}
			p, err := s.Load(t.Context(), epoch, part)
			if err != nil {
				t.Fatal(err)
			}
			m.train(t, f, s, p, r)
		}
		if epoch == 0 {
			if err := s.KeepBest(t.Context()); err != nil {
				t.Fatal(err)
			}
			best = m.rows
		}
		record, bestRecord = mustCheckpoint(t, s)
		rows, err := s.Rows(t.Context(), nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if gathered(t, rows) != best {
			t.Fatalf("epoch %d: the best rows are others", epoch)
		}
	}
	last := m.rows
	p, err := s.Load(t.Context(), 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.train(t, f, s, p, r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = f.mustOpen(t, record, bestRecord)
	defer func() { _ = s.Close() }()
	for _, c := range []struct {
		best bool
		want [entityCount][dim]float32
	}{{true, best}, {false, last}} {
		rows, err := s.Rows(t.Context(), nil, c.best)
		if err != nil {
			t.Fatal(err)
		}
		if gathered(t, rows) != c.want {
			t.Errorf("opened again, rows are others; of the best evaluation: %v", c.best)
		}
	}
}

// TestUnwritten: rows that cannot be written are neither a checkpoint nor the best.
func TestUnwritten(t *testing.T) {
	f := newFixture(t, policies["two levels"])
	s := f.mustOpen(t, nil, nil)
	defer func() { _ = s.Close() }()
	p, err := s.Load(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	newModel().train(t, f, s, p, rand.New(rand.NewPCG(8, 3)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Prepare(ctx)
	if best := s.KeepBest(ctx); !errors.Is(err, context.Canceled) ||
		!errors.Is(best, context.Canceled) {
		t.Errorf("a checkpoint: %v; the best: %v", err, best)
	}
}

// newRows are the vectors of a checkpoint, with edges of other splits.
func newRows(t *testing.T) (f *fixture, r *paged.Rows, all []triples.Triple) {
	t.Helper()
	f = newFixture(t, policies["two levels"])
	others := [][]triples.Triple{randomEdges(2, 90), randomEdges(3, 60)}
	s := f.mustOpen(t, nil, nil)
	record, _ := mustCheckpoint(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return f, f.mustRows(t, record, others), slices.Concat(f.train, others[0], others[1])
}

// TestKnown: of each query that is asked, a partition's known answers are those that a search
// through the edges of all splits finds, be the query for a tail or for a head.
func TestKnown(t *testing.T) {
	_, r, all := newRows(t)
	for _, edges := range [][]triples.Triple{all[:40], all[len(all)-40:], randomEdges(9, 30)} {
		asked := triples.NewIndex(edges)
		found := map[bool]int{}
		for part := range 8 {
			known, err := r.In(t.Context(), part, asked)
			if err != nil {
				t.Fatal(err)
			}
			for i := range asked.Len() {
				q, _ := asked.At(i)
				got := slices.DeleteFunc(slices.Clone(known.Answers(q)), func(e uint32) bool {
					of, _ := r.Place(e)
					return of != part
				})
				want := slices.DeleteFunc(plainAnswers(all, q), func(e uint32) bool {
					of, _ := r.Place(e)
					return of != part
				})
				if !slices.Equal(got, want) {
					t.Fatalf("partition %d: answers of %+v are %v, want %v", part, q, got, want)
				}
				found[q.Head] += len(want)
			}
		}
		if found[true] == 0 || found[false] == 0 {
			t.Fatalf("queries for heads and tails have %v answers", found)
		}
	}
}

// plainAnswers are the entities that answer a query, in ascending order.
func plainAnswers(edges []triples.Triple, q triples.Query) (out []uint32) {
	for _, e := range edges {
		switch {
		case e.Relation != q.Relation:
		case q.Head && e.Tail == q.Entity:
			out = append(out, e.Head)
		case !q.Head && e.Head == q.Entity:
			out = append(out, e.Tail)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestAnswers: the answers of a query come from all splits.
func TestAnswers(t *testing.T) {
	_, r, all := newRows(t)
	for e := range uint32(entityCount) {
		for relation := range uint32(relations) {
			q := triples.Query{Entity: e, Relation: relation, Head: (e+relation)%2 == 0}
			got, err := r.Answers(t.Context(), q)
			if want := plainAnswers(all, q); err != nil || !slices.Equal(got, want) {
				t.Fatalf("answers of %+v are %v, want %v (%v)", q, got, want, err)
			}
		}
	}
}

// TestWithout: of a list, the edges that some split has are left out, and no others.
func TestWithout(t *testing.T) {
	_, r, all := newRows(t)
	var list, want []triples.Triple
	has := map[triples.Triple]bool{}
	for _, e := range all {
		has[e] = true
	}
	for i, e := range randomEdges(11, 200) {
		list = append(list, e, all[i*5])
	}
	for _, e := range list {
		if !has[e] {
			want = append(want, e)
		}
	}
	got, err := r.Without(t.Context(), list)
	if err != nil || len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d edges are in no split, want %d (%v)", len(got), len(want), err)
	}
}

// TestEach: each partition comes once, with all its entities and their rows; an error of who is
// called ends it.
func TestEach(t *testing.T) {
	_, r, _ := newRows(t)
	seen := map[uint32]bool{}
	next := 0
	err := r.Each(t.Context(), func(p *rank.Block) error {
		if p.Number != next {
			t.Errorf("partition %d comes where %d is due", p.Number, next)
		}
		next++
		for row := range p.Count {
			e, want := p.Entity(row), make([]float32, dim)
			initRow(want, uint64(e))
			if part, at := r.Place(e); part != p.Number || at != uint64(row) || seen[e] {
				t.Errorf("entity %d is in row %d of partition %d, its place is %d, %d", e, row,
					p.Number, part, at)
			}
			seen[e] = true
			if got := p.Rows[row*dim:][:dim]; !slices.Equal(got, want) {
				t.Errorf("entity %d has %v, want %v", e, got, want)
			}
		}
		return nil
	})
	if err != nil || len(seen) != entityCount || r.Count() != entityCount {
		t.Errorf("%d of %d entities: %v", len(seen), r.Count(), err)
	}
	broken := errors.New("broken")
	calls := 0
	if err := r.Each(t.Context(), func(*rank.Block) error {
		calls++
		return broken
	}); !errors.Is(err, broken) || calls != 1 {
		t.Errorf("called %d times after an error: %v", calls, err)
	}
}

// TestBytes: the queries of a pass get a part of the memory that is free, which is held until
// Close, and no less than the least where none is.
func TestBytes(t *testing.T) {
	const least = 8 << 20
	f, r, _ := newRows(t)
	before := f.budget.Used()
	bytes := r.PassBytes()
	if more := f.budget.Used() - before; bytes <= least || more < bytes-least ||
		more > (f.budget.Limit()-before)/2 {
		t.Errorf("%d bytes for queries, of %d that are free: %d more are held", bytes,
			f.budget.Limit()-before, more)
	}
	if again := r.PassBytes(); again != bytes {
		t.Errorf("asked again, there are %d bytes for queries, before %d", again, bytes)
	}
	full := mem.NewAccount(f.budget, "others")
	if err := full.Add(f.budget.Limit() - f.budget.Used()); err != nil {
		t.Fatal(err)
	}
	_ = r.PassBytes() // gives back what it had
	if err := full.Add(f.budget.Limit() - f.budget.Used()); err != nil {
		t.Fatal(err)
	}
	if got := r.PassBytes(); got != least {
		t.Errorf("%d bytes for queries where no memory is free, want %d", got, least)
	}
	full.Release()
}

// TestDamagedRecord: a record that is not of this store is damage, for training and for reading.
func TestDamagedRecord(t *testing.T) {
	f := newFixture(t, policies["two levels"])
	s := f.mustOpen(t, nil, nil)
	record, _ := mustCheckpoint(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	record[len(record)/2] ^= 4
	if _, _, err := paged.Open(t.Context(), f.config(), record, nil); !errors.Is(err,
		layout.ErrCorrupt) {
		t.Errorf("opened to train: %v", err)
	}
	if _, _, err := f.openRows(t, record, nil); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("opened to read: %v", err)
	}
	if f.budget.Used() != 0 {
		t.Errorf("%d bytes are held", f.budget.Used())
	}
}

// TestPlan: what a plan has fits in the memory that it was given, and what does not is refused with
// what to do.
func TestPlan(t *testing.T) {
	m := &kv.Meta{Nodes: 1_000_000, EdgeSplits: []kv.EdgeSplitMeta{{Name: "test", Count: 9},
		{Name: "train", Count: 10_000_000}}, EdgeTypes: []string{"a"}}
	want := paged.Want{Dim: 100, State: 1, Memory: 200 << 20}
	frames := map[int64]int{}
	for _, memory := range []int64{200 << 20, 400 << 20, 4 << 30} {
		want.Memory = memory
		p, err := paged.NewPlan(m, want)
		if err != nil {
			t.Fatal(err)
		}
		shares := int64(0)
		for _, s := range p.Parts {
			shares += s.Bytes
		}
		if p.Bytes() > memory || p.Bytes() != shares {
			t.Errorf("in %d bytes, %d are planned, of shares of %d", memory, p.Bytes(), shares)
		}
		inMemory := memory == 4<<30
		if all := p.EdgesOnce == 10_000_000 && p.Frames == p.Order.Parts; all != inMemory ||
			(p.Order.Policy == partition.InMemory) != inMemory {
			t.Errorf("in %d bytes: %d edges at once, %d of %d partitions, %s", memory, p.EdgesOnce,
				p.Frames, p.Order.Parts, p.Order.Policy)
		}
		rows := int64(0)
		of, err := p.PartBytes(m)
		if err != nil {
			t.Fatal(err)
		}
		for part := range p.Order.Parts {
			rows += of(part)
		}
		if raw := int64(1_000_000 * 100 * 4 * 2); rows < raw || rows > raw+raw/10 {
			t.Errorf("%d partitions take %d bytes on disk, their values %d", p.Order.Parts, rows,
				raw)
		}
		disk, err := p.DiskBytes(m)
		if err != nil || disk < 2*rows || disk > 3*rows {
			t.Errorf("the files take up to %d bytes, a copy of all %d: %v", disk, rows, err)
		}
		if got := p.EdgeBytes(m); got != int64(edgefile.EdgeBytes(true))*10_000_000 {
			t.Errorf("edges take %d bytes", got)
		}
		frames[memory] = p.Frames * int(1_000_000/p.Order.Parts)
	}
	if held := slices.Sorted(maps.Values(frames)); held[0] != frames[200<<20] ||
		held[1] != frames[400<<20] {
		t.Errorf("more memory has room for fewer rows: %v", frames)
	}
	for memory, why := range map[int64]string{-5 << 20: "5.0 MiB are missing", 1 << 20: "memory"} {
		want.Memory = memory
		if _, err := paged.NewPlan(m, want); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%d bytes: %v, want %q", memory, err, why)
		}
	}
}

// TestPlanRefused: an order that cannot be is refused, and so are partitions that have no nodes.
func TestPlanRefused(t *testing.T) {
	train := []kv.EdgeSplitMeta{{Name: "train", Count: 1000}}
	want := paged.Want{Dim: 8, Memory: 1 << 30, Policy: partition.Sequential, Parts: 8, Capacity: 4,
		TrainParts: func(int) int { return 5 }}
	refused := func(nodes uint64, why string) {
		t.Helper()
		p, err := paged.NewPlan(&kv.Meta{Nodes: nodes, EdgeSplits: train}, want)
		if err == nil || p != nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%d nodes: plan %v, error %v; want %q", nodes, p, err, why)
		}
	}
	refused(80_000, "training nodes are in 5 partitions, and 4 of 8 fit in memory")
	want.TrainParts = func(int) int { return 2 }
	refused(5, "8 partitions")
}

// TestPlanByHand works out the parts of a plan: frames, edges, places of buckets and known answers.
func TestPlanByHand(t *testing.T) {
	m := &kv.Meta{Nodes: 80_000, EdgeSplits: []kv.EdgeSplitMeta{{Name: "train", Count: 1_000_000}}}
	want := paged.Want{Dim: 1024, State: 1, Memory: 1 << 40, Extra: 16, EdgeExtra: 8}
	for policy, frames := range map[partition.Policy]int64{partition.Sequential: 4,
		partition.Beta: 5, partition.Dispersed: 6} { // of a set, and of what enters next
		want.Policy, want.Parts, want.Capacity, want.Logical = policy, 8, 4, 4
		if policy != partition.Dispersed {
			want.Logical = 0
		}
		want.TrainParts = func(parts int) int { return parts / 2 }
		p, err := paged.NewPlan(m, want)
		if err != nil {
			t.Fatal(err)
		}
		// Frames have 10,000 rows, and sets a quarter of the edges, and a quarter more.
		const edges = 312_501
		bytes := []int64{2*mem.ArenaBytes(frames*10_000*1024*4) + mem.HeapCost(frames*10_000*16),
			mem.HeapCost((24+8)*edges) + 8<<20, mem.HeapCost(16 * 65),
			mem.HeapCost(2*64*1_000_000/8 + 8<<20)}
		for i, name := range []string{"partitions", "edges", "places of buckets",
			"known answers"} {
			if got := p.Parts[i]; got.Name != name || got.Bytes != bytes[i] {
				t.Errorf("%s: %s take %d bytes, want %s of %d", policy, got.Name, got.Bytes, name,
					bytes[i])
			}
		}
		if p.Frames != int(frames) || p.EdgesOnce != edges || len(p.Parts) != 4 {
			t.Errorf("%s: %d frames, %d edges, %d parts", policy, p.Frames, p.EdgesOnce,
				len(p.Parts))
		}
	}
}
