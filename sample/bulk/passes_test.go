package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const batchSize = 40

// fixture is a store whose lists take many blocks, one of them a hub of some.
type fixture struct {
	store *layout.Store
	dev   blockdev.Device
	seeds []sample.NodeID
}

// built is the store of all tests, which only read it.
var built *layout.Store

func mustStore(t testing.TB) *layout.Store {
	if built != nil {
		return built
	}
	g := layouttest.Random(5, 30_000, 600_000)
	g.EdgeTypes, g.Weighted, g.Timed = []string{"a", "b", "c"}, true, true
	for i := range 20_000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(i), Dst: 7})
	}
	built = layouttest.Build(t, vfs.NewMem(), "s", g)
	return built
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{store: mustStore(t)}
	var err error
	if f.dev, err = blockdev.Open(blockdev.Options{Backend: blockdev.Memory}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.dev.Close() })
	for v := range sample.NodeID(1000) {
		f.seeds = append(f.seeds, 11*v+7)
	}
	return f
}

func (f *fixture) order(epoch uint64) (*sample.Order, error) {
	return sample.EpochOrder(f.seeds, 3, epoch, batchSize)
}

// group opens a group over the batches from a step on.
func (f *fixture) group(t testing.TB, c sample.Config, windows, room int64, first uint64,
	budget *mem.Budget, stage PassStage) (*Passes, topology.Reader) {
	topo, err := topology.Open(context.Background(), f.store, f.dev, layout.In,
		topology.Options{CacheBytes: 1 << 20, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*topology.Windows, error) {
		w, ok, err := topology.NewWindows(topo, windows)
		if err == nil && (!ok || w.Count() < 3) {
			t.Errorf("windows: %v, %d", ok, w.Count())
		}
		return w, err
	}
	order, err := f.order(0)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := sample.NewSamplers(1, func() (*sample.Sampler, error) {
		return sample.NewSampler([]topology.Reader{topo}, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	g := NewPasses(PassesConfig{Samplers: alone, Windows: open, Order: f.order,
		PerEpoch: order.Batches(),
		First:    first,
		End:      2 * order.Batches(), Workers: 2, Room: room, WindowBytes: windows,
		Budget: budget, Stage: stage,
		Sampler: func(t topology.Reader) (*sample.Sampler, error) {
			return sample.NewSampler([]topology.Reader{t}, c)
		}})
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := topo.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, topo
}

// Batches drawn in passes are those that a sampler draws one by one.
func TestBatchesAreTheSame(t *testing.T) {
	f := newFixture(t)
	all := sample.Extras{Degrees: true, EdgeWeights: true, EdgeTypes: true}
	for _, c := range []sample.Config{
		{Fanout: []int{3, 2}},
		{Fanout: []int{10, 10, 10}, Extras: all},
		{Fanout: []int{40, sample.All}},
		{Fanout: []int{4, 4}, Draw: sample.DrawWeighted,
			Extras: sample.Extras{WeightSums: true, EdgeTypes: true}},
		{Fanout: []int{5, 5}, Draw: sample.DrawLatest},
		{Fanout: []int{6}, Extras: sample.Extras{WeightSums: true}},
		{},
	} {
		for _, room := range []int64{1, 200 << 10, 64 << 20} {
			if testing.Short() && (room != 200<<10 || len(c.Fanout) > 0 && c.Fanout[0] > 9) {
				continue // races are the same, and of fewer neighbors too
			}
			t.Run(fmt.Sprint(c.Fanout, c.Draw, room), func(t *testing.T) {
				c.Seed = 9
				g, topo := f.group(t, c, 5<<20, room, 3, nil, nil)
				s, err := sample.NewSampler([]topology.Reader{topo}, c)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				f.compare(t, g, s)
			})
		}
	}
}

// compare takes all batches, two of them in the other order.
func (f *fixture) compare(t *testing.T, g *Passes, s *sample.Sampler) {
	ctx := context.Background()
	var want, got sample.Dense
	for step := g.cfg.First; step < g.cfg.End; step++ {
		at := step
		if step%10 == 4 {
			at++
		} else if step%10 == 5 {
			at--
		}
		epoch, batch := at/g.cfg.PerEpoch, at%g.cfg.PerEpoch
		ok, err := g.take(ctx, epoch, batch, &got)
		if err != nil || !ok {
			t.Fatalf("step %d: %v, %v", at, ok, err)
		}
		o, err := f.order(epoch)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sample(ctx, epoch, batch, o.Seeds(batch, nil), &want); err != nil {
			t.Fatal(err)
		}
		if !same(&want, &got) {
			t.Fatalf("step %d: want\n%v\ngot\n%v", at, want, got)
		}
		if ok, err := g.take(ctx, epoch, batch, &got); ok || err != nil {
			t.Fatalf("step %d is there twice: %v", at, err)
		}
	}
}

// A batch of one seed, which is all that a window has the list of, is drawn as well.
func TestBatchOfOneSeed(t *testing.T) {
	f, c := newFixture(t), sample.Config{Fanout: []int{3, 2}, Seed: 9}
	f.seeds = f.seeds[:1]
	g, topo := f.group(t, c, 5<<20, 200<<10, 0, nil, nil)
	s, err := sample.NewSampler([]topology.Reader{topo}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f.compare(t, g, s)
}

// Where there is no memory to draw a batch the group does not have it, and says nothing: others
// draw it. Any other error reaches who takes the batch.
func TestDrawErrors(t *testing.T) {
	f, broken := newFixture(t), errors.New("broken")
	for _, cause := range []error{broken, fmt.Errorf("windows: %w", &mem.LimitError{})} {
		g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 200<<10, 0, nil, nil)
		g.cfg.Windows = func() (*topology.Windows, error) { return nil, cause }
		ok, err := g.take(t.Context(), 0, 0, &sample.Dense{})
		if ok || errors.Is(err, broken) != (cause == broken) || cause != broken && err != nil {
			t.Errorf("%v: batch %v, error %v", cause, ok, err)
		}
	}
}

// Lists that cannot be read are an error of the batch, which is not drawn without them.
func TestReadErrors(t *testing.T) {
	f, broken := newFixture(t), false
	f.dev = devtest.Inject(f.dev, func(string, int64, uint64) (at devtest.Fault) {
		if broken {
			at.Err = syscall.EIO
		}
		return at
	})
	g, _ := f.group(t, sample.Config{Fanout: []int{3}, Seed: 9}, 5<<20, 64<<20, 0, nil, nil)
	broken = true
	if ok, err := g.take(t.Context(), 0, 0, &sample.Dense{}); ok || !errors.Is(err, syscall.EIO) {
		t.Errorf("batch %v, error %v", ok, err)
	}
}

// As many batches are drawn together as there is room for, and one at least.
func TestRoomForBatches(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		room        int64
		least, most uint64
	}{{1, 1, 1}, {100 << 10, 2, 49}, {64 << 20, 50, 50}} {
		budget := mem.NewBudget(0)
		g, _ := f.group(t, sample.Config{Fanout: []int{3, 4}, Seed: 9}, 5<<20, c.room, 0, budget,
			nil)
		orders := 0
		g.cfg.Order = func(epoch uint64) (*sample.Order, error) {
			if orders++; orders > 10 {
				return nil, errors.New("batches are begun again and again")
			}
			return f.order(epoch)
		}
		var d sample.Dense
		if ok, err := g.take(t.Context(), 0, 0, &d); !ok || err != nil {
			t.Fatalf("room of %d bytes: no batch: %v", c.room, err)
		}
		if n := g.next; n < c.least || n > c.most {
			t.Errorf("room of %d bytes: %d batches were drawn, want %d to %d", c.room, n, c.least,
				c.most)
		}
		if held := g.room.Bytes(); g.next > 1 && held > c.room {
			t.Errorf("%d batches that wait take %d bytes, and there is room for %d", g.next-1,
				held, c.room)
		}
	}
}

// Each window has the nodes up to its end; the last one also has the largest of all ids, after
// which there is none.
func TestEndsOf(t *testing.T) {
	cuts := []sample.NodeID{5, 5, 9, 0} // the last one is 1<<32
	after := func(window int) sample.NodeID { return cuts[window] }
	nodes := []sample.NodeID{0, 4, 5, 8, 9, 1<<32 - 1}
	if got := endsOf(nodes, 4, after); !slices.Equal(got, []uint32{2, 2, 4, 6}) {
		t.Errorf("windows end at %d of the nodes, want 2, 2, 4 and 6", got)
	}
	if got := endsOf(nil, 2, after); !slices.Equal(got, []uint32{0, 0}) {
		t.Errorf("windows end at %d of no nodes", got)
	}
}
