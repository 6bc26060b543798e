package topology_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failingDevice fails some of the batches of a device.
type failingDevice struct {
	blockdev.Device
	fail func() error
}

func (d *failingDevice) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	if err := d.fail(); err != nil {
		return &blockdev.ReadError{Path: reqs[0].File.Path(), Off: reqs[0].Off,
			Len: len(reqs[0].Buf), Err: err}
	}
	return d.Device.ReadBatch(ctx, reqs)
}

var errInjected = errors.New("injected")

// TestReadErrors has every third batch fail: each error comes back, nothing that failed stays in
// the cache as if it had been read, and nothing stays pinned.
func TestReadErrors(t *testing.T) {
	g := layouttest.Random(8, 4000, 160000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	r, on := rand.New(rand.NewPCG(3, 3)), false
	dev := &failingDevice{layouttest.Device(t), func() error {
		if on && r.IntN(3) == 0 {
			return errInjected
		}
		return nil
	}}
	lists := g.Lists(layout.In)
	for _, cache := range []int64{1, 30 * 4096, 1 << 24} {
		on = false
		topo, err := topology.Open(context.Background(), s, dev, layout.In,
			topology.Options{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		ses, failed := topo.NewSession(), 0
		for range 60 {
			nodes := make([]layout.NodeID, 20)
			for i := range nodes {
				nodes[i] = layout.NodeID(r.IntN(g.Nodes))
			}
			on = true
			if _, err := ses.Lists(context.Background(), nodes); err != nil {
				failed++
				if !errors.Is(err, errInjected) {
					t.Fatalf("error of another kind: %v", err)
				}
			}
			on = false
			checkSession(t, ses, lists, nodes, r)
		}
		if failed == 0 {
			t.Error("no read failed")
		}
		ses.Release()
		if err := topo.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenErrors fails each batch of opening and loading in turn.
func TestOpenErrors(t *testing.T) {
	g := layouttest.Random(8, 400, 4000)
	g.Dim, g.Features = 4, layouttest.Features(400, 4)
	s, ctx := layouttest.Build(t, vfs.NewMem(), "s", g), context.Background()
	for name, open := range map[string]func(blockdev.Device, *mem.Budget) error{
		"resident": func(dev blockdev.Device, b *mem.Budget) error {
			topo, err := topology.Open(ctx, s, dev, layout.In,
				topology.Options{Resident: true, Budget: b})
			if err == nil {
				err = topo.Close()
			}
			return err
		},
		"paged": func(dev blockdev.Device, b *mem.Budget) error {
			topo, err := topology.Open(ctx, s, dev, layout.In, topology.Options{Budget: b})
			if err == nil {
				err = topo.Close()
			}
			return err
		},
		"rows": func(dev blockdev.Device, b *mem.Budget) error {
			rows, err := rowfile.Open(ctx, s, dev, s.Meta().Features[0], b)
			if err == nil {
				err = rows.Close()
			}
			return err
		},
	} {
		for n := 0; ; n++ {
			left, budget := n, mem.NewBudget(0)
			err := open(&failingDevice{layouttest.Device(t), func() error {
				if left--; left < 0 {
					return errInjected
				}
				return nil
			}}, budget)
			if budget.Used() != 0 {
				t.Fatalf("%s, batch %d: %d bytes stay counted", name, n, budget.Used())
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errInjected) || n > 20 {
				t.Fatalf("%s, batch %d: %v", name, n, err)
			}
		}
		small := mem.NewBudget(8192)
		var limit *mem.LimitError
		if err := open(layouttest.Device(t), small); !errors.As(err, &limit) || small.Used() != 0 {
			t.Errorf("%s in a budget of 8 KiB: %v, %d bytes counted", name, err, small.Used())
		}
	}
}

func TestCancelled(t *testing.T) {
	g := layouttest.Random(8, 400, 4000)
	g.Dim, g.Features = 4, layouttest.Features(400, 4)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	rows, err := rowfile.Open(t.Context(), s, layouttest.Device(t), s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	nodes := []layout.NodeID{1, 2, 3}
	if err := rows.Gather(ctx, nodes, nil, make([]float32, 12)); !errors.Is(err, context.Canceled) {
		t.Errorf("gather: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	for _, opt := range readers {
		none, err := topology.Open(ctx, s, layouttest.Device(t), layout.In, opt)
		if none != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("open: a reader %#v and the error %v", none, err)
		}
		ses := mustTopology(t, s, layout.In, opt).NewSession()
		if err := ses.Degrees(ctx, nodes, make([]uint32, 3)); !errors.Is(err, context.Canceled) {
			t.Errorf("degrees: %v", err)
		}
		ses.Release()
	}
	err = listfile.Scan(ctx, s, layouttest.Device(t), layout.In, func(layout.NodeID, bool,
		*listfile.Lists) error {
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("scan: %v", err)
	}
	stop := errors.New("stop")
	err = listfile.Scan(context.Background(), s, layouttest.Device(t), layout.In,
		func(layout.NodeID, bool,
			*listfile.Lists) error {
			return stop
		})
	if !errors.Is(err, stop) {
		t.Errorf("a scan that was stopped: %v", err)
	}
}

// TestConcurrentReadErrors has sessions wait for blocks that another one fails to read: each gets
// right answers or an error of its own.
func TestConcurrentReadErrors(t *testing.T) {
	g := layouttest.Random(8, 4000, 40000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	lists := g.Lists(layout.In)
	var batches, failed, right atomic.Int64
	var on atomic.Bool
	dev := &failingDevice{layouttest.Device(t), func() error {
		if n := batches.Add(1); on.Load() {
			runtime.Gosched() // so that others find the blocks under way
			if n%3 == 0 {
				return errInjected
			}
		}
		return nil
	}}
	topo, err := topology.Open(context.Background(), s, dev, layout.In,
		topology.Options{CacheBytes: 15 * 4096})
	if err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	var wg sync.WaitGroup
	for w := range 5 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 2))
			ses := topo.NewSession()
			defer ses.Release()
			for range 100 {
				nodes := make([]layout.NodeID, 8)
				for i := range nodes {
					nodes[i] = layout.NodeID(r.IntN(g.Nodes))
				}
				l, err := ses.Lists(context.Background(), nodes)
				if err != nil {
					failed.Add(1)
					if !errors.Is(err, errInjected) {
						t.Errorf("error of another kind: %v", err)
					}
					continue
				}
				right.Add(1)
				for i, v := range nodes {
					checkList(noFatal{t}, &g, l, i, lists[v])
				}
			}
		})
	}
	wg.Wait()
	if failed.Load() == 0 || right.Load() == 0 {
		t.Errorf("%d calls failed, %d did not", failed.Load(), right.Load())
	}
	if err := topo.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoRoomToOverflow has a budget without room for blocks beyond the cache: a small frontier is
// read, a large one is a clear error, and then a small one again.
func TestNoRoomToOverflow(t *testing.T) {
	g := layouttest.Random(8, 4000, 40000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	budget := mem.NewBudget(256 << 10)
	topo := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 8 * 4096,
		Budget: budget})
	ses, r := topo.NewSession(), rand.New(rand.NewPCG(1, 1))
	other := topo.NewSession()
	defer ses.Release()
	defer other.Release()
	all := make([]layout.NodeID, g.Nodes)
	for i := range all {
		all[i] = layout.NodeID(i)
	}
	for range 3 {
		var limit *mem.LimitError
		err := ses.Degrees(context.Background(), all, make([]uint32, len(all)))
		if !errors.As(err, &limit) {
			t.Fatalf("a frontier of all nodes: %v", err)
		}
		checkSession(t, other, g.Lists(layout.In), all[:1], r)
		checkSession(t, ses, g.Lists(layout.In), all[5:6], r)
	}
}

// TestMemoryAsAnnounced compares what readers hold with what a plan says they will.
func TestMemoryAsAnnounced(t *testing.T) {
	const rounding = 3 * 4096 // of arenas to pages
	for _, timed := range []bool{false, true} {
		g := layouttest.Random(8, 30000, 60000)
		g.Timed = timed
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		for _, opt := range readers {
			opt.Budget = mem.NewBudget(0)
			want := topology.PagedBytes(s, layout.In, opt.CacheBytes) + opt.NeighborBytes
			if opt.Resident {
				want = topology.ResidentBytes(s, layout.In, topology.Plain)
			}
			topo, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In,
				opt)
			if err != nil {
				t.Fatal(err)
			}
			if used := opt.Budget.Used(); used > want+rounding {
				t.Errorf("%+v: %d bytes held, %d announced", opt, used, want)
			}
			if st := topo.Stats(); st.Bytes > opt.Budget.Used() || st.Bytes*2 < opt.Budget.Used() {
				t.Errorf("%+v: stats say %d bytes, %d are held", opt, st.Bytes, opt.Budget.Used())
			}
			if err := topo.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDamageStops holds that no read goes on over a flipped bit, and that the error names the
// file and block.
func TestDamageStops(t *testing.T) {
	g := layouttest.Random(5, 3000, 30000)
	g.NoCatalog = true
	all := make([]layout.NodeID, g.Nodes)
	for i := range all {
		all[i] = layout.NodeID(i)
	}
	ctx, r := context.Background(), rand.New(rand.NewPCG(6, 6))
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", g)
	for range 60 {
		m := s.Meta().Files[r.IntN(len(s.Meta().Files))]
		off, bit := r.Int64N(m.Size), byte(1)<<r.IntN(8)
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		var bad *layout.CorruptionError
		err := errors.Join(
			readTopology(ctx, t, s, topology.Options{Resident: true}, all),
			readTopology(ctx, t, s, topology.Options{}, all))
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		if !errors.As(err, &bad) || !errors.Is(err, layout.ErrCorrupt) || bad.Path != m.Path {
			t.Fatalf("bit flipped at %d of %s: %v", off, m.Path, err)
		}
		if bad.Block > 0 && (off < bad.Offset || off >= bad.Offset+4096) {
			t.Fatalf("bit flipped at %d, error names offset %d", off, bad.Offset)
		}
	}
}

func readTopology(ctx context.Context, t testing.TB, s *layout.Store,
	opt topology.Options, nodes []layout.NodeID) error {
	topo, err := topology.Open(ctx, s, layouttest.Device(t), layout.In, opt)
	if err != nil {
		return err
	}
	ses := topo.NewSession()
	_, err = ses.Lists(ctx, nodes)
	ses.Release()
	return errors.Join(err, topo.Close())
}
