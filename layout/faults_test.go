package layout_test

import (
	"context"
	"errors"
	"math/rand/v2"
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
