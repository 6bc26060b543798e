package layout_test

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
	g := layouttest.Random(8, 4000, 40000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	r, on := rand.New(rand.NewPCG(3, 3)), false
	dev := &failingDevice{mustDevice(t), func() error {
		if on && r.IntN(3) == 0 {
			return errInjected
		}
		return nil
	}}
	lists := g.Lists(layout.In)
	for _, cache := range []int64{1, 30 * 4096, 1 << 24} {
		on = false
		topo, err := s.Topology(context.Background(), dev, layout.In,
			layout.TopologyOptions{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		ses, failed := topo.NewSession(), 0
		for range 60 {
			nodes := make([]layout.NodeID, 200)
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
			topo, err := s.Topology(ctx, dev, layout.In,
				layout.TopologyOptions{Resident: true, Budget: b})
			if err == nil {
				err = topo.Close()
			}
			return err
		},
		"paged": func(dev blockdev.Device, b *mem.Budget) error {
			topo, err := s.Topology(ctx, dev, layout.In, layout.TopologyOptions{Budget: b})
			if err == nil {
				err = topo.Close()
			}
			return err
		},
		"rows": func(dev blockdev.Device, b *mem.Budget) error {
			rows, err := s.Rows(ctx, dev, s.Meta().Features[0], b)
			if err == nil {
				err = rows.Close()
			}
			return err
		},
	} {
		for n := 0; ; n++ {
			left, budget := n, mem.NewBudget(0)
			err := open(&failingDevice{mustDevice(t), func() error {
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
		if err := open(mustDevice(t), small); !errors.As(err, &limit) || small.Used() != 0 {
			t.Errorf("%s in a budget of 8 KiB: %v, %d bytes counted", name, err, small.Used())
		}
	}
}

func TestCancelled(t *testing.T) {
	g := layouttest.Random(8, 400, 4000)
	g.Dim, g.Features = 4, layouttest.Features(400, 4)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	rows := mustRows(t, s, nil)
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
		if _, err := s.Topology(ctx, mustDevice(t), layout.In, opt); !errors.Is(err,
			context.Canceled) {
			t.Errorf("open: %v", err)
		}
		ses := mustTopology(t, s, layout.In, opt).NewSession()
		if err := ses.Degrees(ctx, nodes, make([]uint32, 3)); !errors.Is(err, context.Canceled) {
			t.Errorf("degrees: %v", err)
		}
		ses.Release()
	}
	err := s.ScanTopology(ctx, mustDevice(t), layout.In, func(layout.NodeID, bool,
		*layout.Lists) error {
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("scan: %v", err)
	}
	stop := errors.New("stop")
	err = s.ScanTopology(context.Background(), mustDevice(t), layout.In, func(layout.NodeID, bool,
		*layout.Lists) error {
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("a scan that was stopped: %v", err)
	}
}

// TestWriteErrors fails every write: writers say so, and close what they opened.
func TestWriteErrors(t *testing.T) {
	fs := &fullDisk{FS: vfs.NewMem()}
	for n := range 8 {
		fs.left = n
		err := writeAll(fs)
		if n < 6 && !errors.Is(err, errInjected) {
			t.Errorf("write %d failed, the writers say %v", n, err)
		}
		if fs.open != 0 {
			t.Fatalf("write %d failed, %d files are open", n, fs.open)
		}
	}
}

func writeAll(fs vfs.FS) error {
	w, err := layout.NewTopologyWriter(fs, "x", layout.TopologySpec{Nodes: 10})
	if err != nil {
		return err
	}
	for v := range layout.NodeID(10) {
		if err := w.AddEdge(v, layout.Edge{}); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	if _, err := w.Finish(); err != nil {
		return errors.Join(err, w.Abort())
	}
	rw, err := layout.NewRowsWriter(fs, "y", layout.RowsSpec{Name: "y", Path: "y.rows",
		DType: "f32", Dim: 1, Nodes: 1})
	if err != nil {
		return err
	}
	if err := rw.AddF32([]float32{1}); err != nil {
		return errors.Join(err, rw.Abort())
	}
	if _, _, err := rw.Finish(); err != nil {
		return errors.Join(err, rw.Abort())
	}
	return nil
}

// fullDisk fails after so many operations that write.
type fullDisk struct {
	vfs.FS
	left, open int
}

func (d *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err == nil {
		d.open++
	}
	return &fullFile{f, d}, err
}

type fullFile struct {
	vfs.File
	d *fullDisk
}

func (f *fullFile) step() error {
	if f.d.left--; f.d.left < 0 {
		return errInjected
	}
	return nil
}

func (f *fullFile) Write(b []byte) (int, error) {
	if err := f.step(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f *fullFile) Sync() error {
	if err := f.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *fullFile) Close() error {
	f.d.open--
	return f.File.Close()
}

// TestConcurrentReadErrors has sessions wait for blocks that another one fails to read: each gets
// right answers or an error of its own.
func TestConcurrentReadErrors(t *testing.T) {
	g := layouttest.Random(8, 4000, 40000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	lists := g.Lists(layout.In)
	var batches, failed, right atomic.Int64
	var on atomic.Bool
	dev := &failingDevice{mustDevice(t), func() error {
		if n := batches.Add(1); on.Load() {
			runtime.Gosched() // so that others find the blocks under way
			if n%3 == 0 {
				return errInjected
			}
		}
		return nil
	}}
	topo, err := s.Topology(context.Background(), dev, layout.In,
		layout.TopologyOptions{CacheBytes: 15 * 4096})
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
	topo := mustTopology(t, s, layout.In, layout.TopologyOptions{CacheBytes: 8 * 4096,
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
			want := s.PagedBytes(layout.In, opt.CacheBytes) + opt.NeighborBytes
			if opt.Resident {
				want = s.ResidentBytes(layout.In)
			}
			topo, err := s.Topology(context.Background(), mustDevice(t), layout.In, opt)
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
