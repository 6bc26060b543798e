package sample

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

// classRows are class labels of n nodes: node modulo 5, -1 for 4.
func classRows(t *testing.T, dev blockdev.Device, n int) *rowfile.Reader {
	return layouttest.WordFile(t, dev, n, func(v NodeID) uint32 { return uint32(classOf(v)) })
}

// testDevice reads files in memory. It stays open, since tests count goroutines.
var testDevice = func() blockdev.Device {
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		panic(err)
	}
	return dev
}()

// failingDevice returns a device whose reads fail with an error once it is set.
func failingDevice() (dev blockdev.Device, fail *error) {
	fail = new(error)
	return devtest.Inject(testDevice, func(string, int64, uint64) devtest.Fault {
		return devtest.Fault{Err: *fail}
	}), fail
}

func classOf(v NodeID) int32 {
	if v%5 == 4 {
		return -1
	}
	return int32(v % 5)
}

// testEpoch is an epoch of 47 seeds in batches of 5 over a small graph.
type testEpoch struct {
	graph    *sampletest.Graph
	rows     *sampletest.Rows
	features rowcache.Features
	labels   *Labels
	order    *Order
	budget   *mem.Budget
}

func newTestEpoch(t *testing.T) *testEpoch {
	t.Helper()
	e := &testEpoch{graph: sampletest.RMAT(8, 2000, 3), budget: mem.NewBudget(0)}
	e.rows = &sampletest.Rows{Count: e.graph.Nodes(), Dim: 4}
	e.features = rowcache.NewDirect(e.rows)
	e.order = mustOrder(t, someNodes(47), 1, 3, 5)
	var err error
	e.labels, err = NewLabels(context.Background(), &kv.LabelsMeta{Kind: "class",
		Classes: []string{"a", "b", "c", "d"}}, classRows(t, testDevice, int(e.graph.Nodes())),
		e.graph.Nodes(), e.budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.labels.Close() })
	return e
}

// samplers returns a drawer of samplers that are opened so.
func samplers(open func() (*Sampler, error)) func(workers int) (Drawer, error) {
	return func(workers int) (Drawer, error) { return NewSamplers(workers, open) }
}

func (e *testEpoch) config(workers int) PipelineConfig {
	return PipelineConfig{
		Drawer: samplers(func() (*Sampler, error) {
			return NewSampler([]topology.Reader{e.graph},
				Config{Fanout: []int{4, 3}, Seed: 8, Budget: e.budget})
		}),
		Order: e.order, Features: e.features, Labels: e.labels, Workers: workers,
		Budget: e.budget,
	}
}

func mustPipeline(t *testing.T, ctx context.Context, c PipelineConfig) *Pipeline {
	t.Helper()
	p, err := NewPipeline(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// hashes runs a pipeline to its end.
func hashes(t *testing.T, p *Pipeline, first uint64) (out []uint64) {
	t.Helper()
	for {
		b, err := p.Next(context.Background())
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Index != first+uint64(len(out)) {
			t.Fatalf("batch %d comes after %d others, from %d", b.Index, len(out), first)
		}
		out = append(out, BatchHash(b))
		b.Release()
		b.Release() // does nothing
	}
}

func TestPipelineOrderAndContents(t *testing.T) {
	e := newTestEpoch(t)
	s := mustSampler(t, Config{Fanout: []int{4, 3}, Seed: 8}, e.graph)
	var want []uint64
	for i := range e.order.Batches() {
		b := Batch{Epoch: 3, Index: i, Seeds: e.order.Seeds(i, nil), Dim: 4}
		if err := s.Sample(context.Background(), 3, i, b.Seeds, &b.Dense); err != nil {
			t.Fatal(err)
		}
		for _, v := range b.Dense.NodeIDs {
			for j := range 4 {
				b.X = append(b.X, sampletest.Value(v, j))
			}
		}
		for _, v := range b.Seeds {
			b.Labels = append(b.Labels, classOf(v))
		}
		want = append(want, BatchHash(&b))
	}
	for _, c := range []struct{ workers, ready int }{{1, 1}, {1, 0}, {2, 3}, {4, 1}, {20, 9},
		{3, -1}} {
		for _, start := range []uint64{0, 4, 9, 10} {
			cfg := e.config(c.workers)
			cfg.Ready, cfg.StartBatch = c.ready, start
			cfg.InTurn = c.ready < 0
			p := mustPipeline(t, context.Background(), cfg)
			if got := hashes(t, p, start); !slices.Equal(got, want[start:]) {
				t.Errorf("%+v from %d: hashes %x, want %x", c, start, got, want[start:])
			}
			if _, err := p.Next(context.Background()); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
			stages := p.Stats().Stages
			for _, st := range stages {
				if st.Done != uint64(len(want))-start {
					t.Errorf("stage %s did %d batches", st.Name, st.Done)
				}
			}
			if len(stages) != 3 || stages[0].Workers != c.workers {
				t.Errorf("stages %+v", stages)
			}
		}
	}
	if _, err := NewPipeline(context.Background(), PipelineConfig{Order: e.order,
		StartBatch: 11}); err == nil {
		t.Error("a start after the end is taken")
	}
}

func TestPipelineMemory(t *testing.T) {
	e := newTestEpoch(t)
	before := e.budget.Used()
	p := mustPipeline(t, context.Background(), e.config(2))
	b, err := p.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if used := e.budget.Used() - before; used < b.HeapBytes()+int64(4*len(b.X)) {
		t.Errorf("%d bytes counted, a batch alone holds more", used)
	}
	hash := BatchHash(b)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if BatchHash(b) != hash {
		t.Error("a batch changed by Close, before its Release")
	}
	ids := b.Dense.NodeIDs
	b.Release()
	if bug.Checking && ids[0] != 0xcdcdcdcd {
		t.Error("a released batch is not mangled")
	}
	if used := e.budget.Used(); used != before {
		t.Errorf("%d bytes counted after Close, %d before", used, before)
	}
	if _, err := p.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
	// A budget too small for a batch is an error that says so.
	e.budget = mem.NewBudget(10000)
	small := mustPipeline(t, context.Background(), e.config(1))
	var limit *mem.LimitError
	if _, err := small.Next(context.Background()); !errors.As(err, &limit) {
		t.Errorf("without memory: %v", err)
	}
}

// Each stage fails in turn; the pipeline must report it, stop, and leave nothing running.
func TestPipelineErrors(t *testing.T) {
	running := runtime.NumGoroutine()
	for _, c := range []struct {
		name string
		set  func(*testEpoch, *PipelineConfig)
		want string
	}{
		{"sampler", func(e *testEpoch, c *PipelineConfig) {
			c.Order = mustOrder(t, []NodeID{1, 2, 3, 4, 5, 6, 7, 8, 9, 6}, 1, 3, 10)
		}, "seed 6 is given twice"},
		{"features", func(e *testEpoch, c *PipelineConfig) {
			bad := e.order.Seeds(6, nil)[0]
			e.rows.Fail = &bad
		}, "cannot be read"},
		{"labels", func(e *testEpoch, c *PipelineConfig) {
			dev, fail := failingDevice()
			c.Labels = &Labels{rows: classRows(t, dev, int(e.graph.Nodes())), classes: 4}
			*fail = errors.New("labels are gone")
		}, "labels are gone"},
	} {
		for _, workers := range []int{1, 3} {
			e := newTestEpoch(t)
			cfg := e.config(workers)
			c.set(e, &cfg)
			p := mustPipeline(t, context.Background(), cfg)
			var err error
			for err == nil {
				var b *Batch
				if b, err = p.Next(context.Background()); err == nil {
					b.Release()
				}
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			}
			if _, again := p.Next(context.Background()); again != err {
				t.Errorf("%s: then error %v", c.name, again)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	e := newTestEpoch(t)
	cfg := e.config(3)
	made := 0
	cfg.Drawer = samplers(func() (*Sampler, error) {
		if made++; made == 3 {
			return nil, errors.New("no third sampler")
		}
		return NewSampler([]topology.Reader{e.graph}, Config{Fanout: []int{4, 3}})
	})
	if _, err := NewPipeline(context.Background(), cfg); err == nil {
		t.Error("an error of the factory is lost")
	}
	devtest.CheckGoroutines(t, running)
}

func TestPipelineCancellation(t *testing.T) {
	running := runtime.NumGoroutine()
	e := newTestEpoch(t)
	ctx, cancel := context.WithCancel(context.Background())
	p := mustPipeline(t, ctx, e.config(2))
	if _, err := p.Next(ctx); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for range 20 { // the caller's context ends one call, not the pipeline
		if b, err := p.Next(stopped); err == nil {
			b.Release()
		} else if !errors.Is(err, context.Canceled) && err != io.EOF {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err := p.Next(context.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	// Close at once, before and while the first batches are made.
	for i := range 30 {
		p := mustPipeline(t, context.Background(), e.config(1+i%4))
		if i%2 == 1 {
			runtime.Gosched()
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	devtest.CheckGoroutines(t, running)
}

func TestMultiLabels(t *testing.T) {
	rows := layouttest.RowFile(t, nil, rowfile.U8, 2, 100, func(v NodeID) []byte {
		return []byte{byte(bitsOf(v)), byte(bitsOf(v) >> 8)}
	})
	meta := &kv.LabelsMeta{Kind: "multi", Classes: strings.Split("abcdefghijk", "")}
	l, err := NewLabels(context.Background(), meta, rows, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{Seeds: []NodeID{9, 0, 77}}
	if err := l.Fill(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	if !l.Multi() || l.Classes() != 11 || len(b.Multi) != 33 || b.Labels != nil {
		t.Fatalf("%v, %d classes, %d values", l.Multi(), l.Classes(), len(b.Multi))
	}
	for i, v := range b.Seeds {
		for c := range 11 {
			if want := float32(bitsOf(v) >> c & 1); b.Multi[i*11+c] != want {
				t.Errorf("node %d, class %d: %v, want %v", v, c, b.Multi[i*11+c], want)
			}
		}
	}
	for _, m := range []*kv.LabelsMeta{
		{Kind: "multi", Classes: make([]string, 17)}, {Kind: "class"}, {Kind: "target"},
	} {
		if _, err := NewLabels(context.Background(), m, rows, 100, nil); err == nil {
			t.Errorf("labels %+v in rows of 2 bytes are taken", m)
		}
	}
}

// TestNumbers: labels that are numbers come as they are, NaN for none, in memory and from their
// file.
func TestNumbers(t *testing.T) {
	numbers := layouttest.WordFile(t, nil, 100, func(v NodeID) uint32 {
		if v == 0 {
			return math.Float32bits(float32(math.NaN()))
		}
		return math.Float32bits(-float32(v) / 2)
	})
	for _, limit := range []int64{0, 1} {
		l, err := NewLabels(t.Context(), &kv.LabelsMeta{Kind: "target"}, numbers, 100,
			mem.NewBudget(limit))
		if err != nil {
			t.Fatal(err)
		}
		b := Batch{Seeds: []NodeID{9, 0, 77}}
		if err := l.Fill(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if !l.Numbers() || (l.all != nil) != (limit == 0) || len(b.Targets) != 3 ||
			b.Targets[0] != -4.5 || b.Targets[1] == b.Targets[1] || b.Targets[2] != -38.5 {
			t.Errorf("limit %d: numbers %v of %v", limit, b.Targets, b.Seeds)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func bitsOf(v NodeID) uint64 { return uint64(v)*0x9e3779b97f4a7c15>>40 | 1<<10 }

// Labels that do not fit in the budget are read with each batch, and are the same.
func TestLabelsWithoutMemory(t *testing.T) {
	meta, rows := &kv.LabelsMeta{Kind: "class", Classes: make([]string, 70000)},
		classRows(t, testDevice, 70000)
	for _, limit := range []int64{0, 1} {
		l, err := NewLabels(context.Background(), meta, rows, 70000, mem.NewBudget(limit))
		if err != nil {
			t.Fatal(err)
		}
		if (l.all != nil) != (limit == 0) {
			t.Errorf("limit %d: in memory: %v", limit, l.all != nil)
		}
		nodes, out := []NodeID{69999, 4, 65536, 65535}, make([]int32, 4)
		if err := l.Of(context.Background(), nodes, out); err != nil {
			t.Fatal(err)
		}
		for i, v := range nodes {
			if out[i] != classOf(v) {
				t.Errorf("limit %d: node %d has label %d", limit, v, out[i])
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dev, fail := failingDevice()
	rows = classRows(t, dev, 10)
	*fail = errors.New("disk gone")
	if _, err := NewLabels(context.Background(), meta, rows, 10, nil); !errors.Is(err, *fail) {
		t.Error("a failed read is lost")
	}
}

func TestResident(t *testing.T) {
	rows := &sampletest.Rows{Count: 3000, Dim: 700}
	budget := mem.NewBudget(0)
	f, err := rowcache.NewResident(context.Background(), rows, 3000, 3, budget)
	if err != nil {
		t.Fatal(err)
	}
	ids := append(someNodes(900), 5, 5, 2999)
	out := make([]float32, len(ids)*700)
	if err := f.Gather(context.Background(), ids, out); err != nil {
		t.Fatal(err)
	}
	for i, v := range ids {
		for _, j := range []int{0, 1, 699} {
			if out[i*700+j] != sampletest.Value(v, j) {
				t.Fatalf("row %d, element %d is wrong", i, j)
			}
		}
	}
	if s := f.Stats(); s.Hits != uint64(len(ids)) || s.Used != 3000*700*4 ||
		budget.Used() < s.Used {
		t.Errorf("stats %+v, %d bytes counted", s, budget.Used())
	}
	if err := f.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("Close: %v, %d bytes still counted", err, budget.Used())
	}
	bad := NodeID(2500)
	rows.Fail = &bad
	if _, err := rowcache.NewResident(context.Background(), rows, 3000, 1, budget); err == nil ||
		budget.Used() != 0 {
		t.Errorf("a failed load: %v, %d bytes still counted", err, budget.Used())
	}
}

// TestWrongLabelsAreDamage: a class that is not there is found where labels are loaded, or with the
// batch where they are not held.
func TestWrongLabelsAreDamage(t *testing.T) {
	meta := &kv.LabelsMeta{Kind: "class", Classes: make([]string, 3)}
	rows := classRows(t, testDevice, 6)
	if _, err := NewLabels(t.Context(), meta, rows, 6, nil); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("loaded: %v, want damage", err)
	}
	l, err := NewLabels(t.Context(), meta, rows, 6, mem.NewBudget(1))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int32, 2)
	if err := l.Of(t.Context(), []NodeID{0, 4}, out); err != nil {
		t.Errorf("right ones: %v", err)
	}
	if err := l.Of(t.Context(), []NodeID{0, 3}, out); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("with a batch: %v, want damage", err)
	}
}
