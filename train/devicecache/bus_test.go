package devicecache

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
	"gdb/train/plan"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// farDevice computes on the CPU, as if its memory were another: it takes rows from locked memory
// only, and one of both ways is slow.
type farDevice struct {
	backend.Backend
	backend.Preparer // nil: it prepares nothing
	t                *testing.T
	locked           map[uintptr]int // bytes that are locked, by their first one
	refused          int             // the lock that fails, from 1 on; 0 for none
	locks            int
	send             bool // reading in place is slow, and else sending
	read, was        int  // rows that were read in place, and sent
}

func (d *farDevice) Group(bool)                                   {}
func (d *farDevice) Device() backend.Device                       { return d }
func (d *farDevice) DeviceMemory() (free, total int64, err error) { return 1 << 30, 1 << 30, nil }
func (d *farDevice) Sent() int64                                  { return 0 }
func (d *farDevice) Release(backend.Tensor) error                 { return nil }
func (d *farDevice) AwaitSent() error                             { return nil }

func (d *farDevice) Neighbors([]backend.Neighbors) (backend.NeighborLists, error) {
	return nil, errRefused
}

var errRefused = errors.New("the pages cannot be locked")

func (d *farDevice) Lock(x []byte) error {
	if d.locks++; d.locks == d.refused {
		return errRefused
	}
	d.locked[uintptr(unsafe.Pointer(&x[0]))] = len(x)
	return nil
}

func (d *farDevice) Unlock(x []byte) error {
	delete(d.locked, uintptr(unsafe.Pointer(&x[0])))
	return nil
}

// mustLocked fails if some of x is not locked.
func (d *farDevice) mustLocked(x []float32) {
	if len(x) == 0 {
		return
	}
	at := uintptr(unsafe.Pointer(&x[0]))
	for first, n := range d.locked {
		if at >= first && at+uintptr(4*len(x)) <= first+uintptr(n) {
			return
		}
	}
	d.t.Errorf("%d values are taken from memory that is not locked", len(x))
}

func (d *farDevice) SendLocked(x []float32, zeros, rows, cols int) backend.Tensor {
	d.mustLocked(x)
	d.was++
	if !d.send {
		time.Sleep(10 * time.Millisecond)
	}
	all := make([]float32, rows*cols)
	copy(all[zeros*cols:], x)
	return d.Host(all, rows, cols)
}

func (d *farDevice) ReadLocked(kept backend.Tensor, held, read []float32, there backend.Tensor,
	cols, over int) backend.Tensor {
	values := make([]float32, there.Len())
	d.Read(values, there)
	from := mem.View[uint32](mem.BytesOf(values))
	d.mustLocked(held)
	d.mustLocked(read)
	d.read++
	if d.send {
		time.Sleep(10 * time.Millisecond)
	}
	places := make([]uint32, len(from))
	for i, at := range from {
		switch n := int(at) - kept.Rows; {
		case at == rowcache.NoRow || n < 0:
			places[i] = at
		case n < len(held)/cols:
			places[i] = uint32(kept.Rows + n*cols)
		default:
			places[i] = uint32(kept.Rows + len(held) + n - len(held)/cols)
		}
	}
	for _, at := range from {
		if at != rowcache.NoRow && int(at) >= kept.Rows {
			over--
		}
	}
	if over != 0 {
		d.t.Errorf("%d more rows are counted as read over the bus", over)
	}
	both := append(append([]float32{}, held...), read...)
	out := d.Scratch(len(from), cols)
	backend.PickRows(d, out, kept, d.Host(both, 1, len(both)),
		d.Host(mem.View[float32](mem.BytesOf(places)), len(from), 1))
	return out
}

// mustReadRows opens a file of rows of testDim values that are computed.
func mustReadRows(t *testing.T, budget *mem.Budget) *rowfile.Reader {
	t.Helper()
	g := layouttest.Graph{Nodes: testNodes, Dim: testDim}
	for v := range testNodes {
		for j := range testDim {
			g.Features = append(g.Features, sampletest.Value(sample.NodeID(v), j))
		}
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	r, err := rowfile.Open(t.Context(), s, layouttest.Device(t), s.Meta().Features[0], budget)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// openHost opens features of the host.
func openHost(t *testing.T, cache string, rows rowcache.Rows,
	budget *mem.Budget) (f rowcache.Features, located rowcache.Located) {
	t.Helper()
	var err error
	opt := rowcache.Options{Bytes: rowcache.Bytes(900, testDim, 32), Budget: budget}
	switch cache {
	case "none":
		located = rowcache.NewDirect(rows)
	case "all":
		located, err = rowcache.NewResident(t.Context(), rows, testNodes, 2, budget)
	case "static":
		var hot []sample.NodeID
		for v := range 900 {
			hot = append(hot, sample.NodeID(v+80))
		}
		located, err = rowcache.New(t.Context(), rows, rowcache.NewStatic(hot), opt)
	case "sieve":
		if f, err = rowcache.New(t.Context(), rows, rowcache.NewSIEVE(), opt); err == nil {
			return f, nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return located, located
}

// waysOfRows trains on batches before and after the device has rows, with a lock that is refused.
func waysOfRows(t *testing.T, cache string, send bool, refused int) (inPlace bool, why string) {
	t.Helper()
	budget := mem.NewBudget(256 << 20)
	cpu, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	be := &farDevice{Backend: cpu, t: t, locked: map[uintptr]int{}, send: send, refused: refused}
	rows := mustReadRows(t, budget)
	host, located := openHost(t, cache, rows, budget)
	c := New(host, located, be, budget)
	p := &plan.Plan{BatchNodes: 300, OnDevice: &plan.DevicePlan{}}
	if err := c.Choose(t.Context(), p, testNodes, 2); err != nil {
		t.Fatal(err)
	}
	way := *p.OnDevice.Bus
	be.read, be.was = 0, 0
	early, late := batchOf(t, c, true, someNodes(700, 3)), batchOf(t, c, true, someNodes(90, 9))
	check(t, c, early)
	var hot []sample.NodeID
	for v := range 100 {
		hot = append(hot, sample.NodeID(v))
	}
	if err := c.Fill(t.Context(), rows, hot, testNodes); err != nil {
		t.Fatal(err)
	}
	check(t, c, late)
	for i := range 4 {
		check(t, c, batchOf(t, c, true, someNodes(100+900*i, i)))
		check(t, c, batchOf(t, c, true, someNodes(2900, 7*i)))
	}
	check(t, c, batchOf(t, c, true, hot))
	if got := be.read > 0; got != way.InPlace || be.was > 0 == way.InPlace {
		t.Errorf("cache %s: rows come by %+v, and %d times were read and %d sent", cache, way,
			be.read, be.was)
	}
	if err := errors.Join(c.Close(), host.Close(), rows.Close(), cpu.Close()); err != nil {
		t.Error(err)
	}
	if n := budget.Used(); n != 0 || len(be.locked) != 0 {
		t.Errorf("cache %s: after Close %d bytes are counted, %d ranges locked", cache, n,
			len(be.locked))
	}
	return way.InPlace, way.Why
}

// TestPlacedRowsAreSent: rows of a batch that has all of them in locked memory are sent from there,
// those that the device keeps left out.
func TestPlacedRowsAreSent(t *testing.T) {
	for _, keep := range []int{0, 100, testNodes} {
		near, rows, _ := mustOpen(t)
		d := &farDevice{Backend: near.be, t: t, locked: map[uintptr]int{}, send: true}
		c := New(near.host, nil, d, nil)
		var hot []sample.NodeID
		for i := range keep {
			hot = append(hot, sample.NodeID(i))
		}
		if err := c.Fill(t.Context(), rows, hot, testNodes); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			b := newBatch(someNodes(200+100*i, i), 1)
			a, err := mem.NewArena(nil, "rows", int64(4*len(b.X)))
			if err != nil {
				t.Fatal(err)
			}
			b.X = mem.View[float32](a.Bytes())
			if err := errors.Join(d.Lock(a.Bytes()), c.host.Gather(t.Context(), b.Dense.NodeIDs,
				b.X), c.Place(b)); err != nil {
				t.Fatal(err)
			}
			before := d.was
			check(t, c, b)
			if d.was != before+1 {
				t.Errorf("with %d rows kept, rows were sent %d times", keep, d.was-before)
			}
			if err := errors.Join(d.Unlock(a.Bytes()), a.Free()); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaysOfRows: a step has the rows of all nodes, whichever way is faster for those that the
// device does not keep, and wherever the host has them; what is locked is unlocked again.
func TestWaysOfRows(t *testing.T) {
	for _, cache := range []string{"none", "static", "all", "sieve"} {
		for _, send := range []bool{true, false} {
			inPlace, why := waysOfRows(t, cache, send, 0)
			if inPlace != (!send && cache != "sieve") || why != "" {
				t.Errorf("cache %s, sending is faster %v: in place %v, %s", cache, send, inPlace,
					why)
			}
		}
	}
}

// TestLockRefused: where memory cannot be locked for the trial, or the host's in the end, copies
// are sent, and it is said why.
func TestLockRefused(t *testing.T) {
	for _, refused := range []int{1, 2, 3} {
		inPlace, why := waysOfRows(t, "static", false, refused)
		if inPlace || !strings.Contains(why, errRefused.Error()) {
			t.Errorf("lock %d is refused: in place %v, %q", refused, inPlace, why)
		}
	}
}
