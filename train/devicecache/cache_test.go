package devicecache

import (
	"context"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

const testDim, testNodes = 5, 3000

// mustOpen opens a cache on the CPU, which computes as a device would, behind rows that are
// computed.
func mustOpen(t *testing.T) (*Cache, *sampletest.Rows, *mem.Budget) {
	t.Helper()
	budget := mem.NewBudget(64 << 20)
	be, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	rows := &sampletest.Rows{Count: testNodes, Dim: testDim}
	host := rowcache.NewDirect(rows)
	c := New(host, host, be, budget)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		if n := budget.Used(); n != 0 {
			t.Errorf("%d bytes are counted after Close", n)
		}
	})
	return c, rows, budget
}

// testZeros is how many rows of zeros a step asks for before those of a batch.
const testZeros = 3

// prepared is what was prepared of a batch, beside its lists: room for numbers, which have no value
// before they are written.
type prepared struct {
	rows, room int
	words      []uint32
}

func (p *prepared) FeatureRows() int { return p.rows }
func (p *prepared) Drop()            {}
func (p *prepared) Free() bool       { return false }

func (p *prepared) Places(words int) []uint32 {
	if words > p.room {
		return nil
	}
	for len(p.words) < words {
		p.words = append(p.words, 1<<31)
	}
	p.words = p.words[:words]
	return p.words
}

// newBatch is a batch of some nodes without its rows, with room for a number of places for each.
func newBatch(nodes []sample.NodeID, places int) *sample.Batch {
	rows := len(nodes) + testZeros
	b := &sample.Batch{Dim: testDim, X: make([]float32, len(nodes)*testDim),
		Prepared: &prepared{rows: rows, room: places * rows}}
	b.Dense.NodeIDs = nodes
	return b
}

// batchOf is a batch of some nodes, gathered by the cache or whole.
func batchOf(t *testing.T, c *Cache, through bool, nodes []sample.NodeID) *sample.Batch {
	t.Helper()
	b := newBatch(nodes, 1)
	features := c.For(b)
	if !through {
		features = c.host
	}
	err := features.Gather(t.Context(), nodes, b.X)
	if err == nil && !through {
		err = c.Place(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// check compares what a step reads of a batch with the rows of its nodes.
func check(t *testing.T, c *Cache, b *sample.Batch) {
	t.Helper()
	checkInput(t, c, b, c.Input)
}

// checkInput is check of an input that is put together by a function.
func checkInput(t *testing.T, c *Cache, b *sample.Batch,
	input func(b *sample.Batch) (backend.Assemble, error)) {
	t.Helper()
	if err := c.be.Begin(); err != nil {
		t.Fatal(err)
	}
	got := b.X
	put, err := input(b)
	if err != nil {
		t.Fatal(err)
	}
	if put != nil {
		of := b.Prepared.(*prepared)
		x := put(of.rows, backend.Words(c.be, of.words))
		got = make([]float32, x.Len())
		c.be.Read(got, x)
		for i, v := range got[:testZeros*testDim] {
			if v != 0 {
				t.Fatalf("value %d before the rows is %g", i, v)
			}
		}
		got = got[testZeros*testDim:]
	}
	if err := c.be.Err(); err != nil {
		t.Fatal(err)
	}
	for i, v := range b.Dense.NodeIDs {
		for j := range testDim {
			if want := sampletest.Value(v, j); got[i*testDim+j] != want {
				t.Fatalf("value %d of node %d, at %d of %d, is %g, not %g", j, v, i,
					len(b.Dense.NodeIDs), got[i*testDim+j], want)
			}
		}
	}
}

// someNodes are nodes in no order, of which some are among the first hundred.
func someNodes(n, from int) (nodes []sample.NodeID) {
	for i := range n {
		nodes = append(nodes, sample.NodeID((from+i*37)%testNodes))
	}
	return nodes
}

// TestRowsAreTheSame: a step reads the rows of all nodes, whether the device has none, some or all
// of them, and whether a batch was gathered before it had them, without it, or behind it.
func TestRowsAreTheSame(t *testing.T) {
	for _, keep := range []int{1, 100, testNodes} {
		c, rows, _ := mustOpen(t)
		early, late := batchOf(t, c, true, someNodes(400, 3)), batchOf(t, c, true, someNodes(70, 9))
		check(t, c, early)
		var hot []sample.NodeID
		for i := range keep {
			hot = append(hot, sample.NodeID(keep-1-i))
		}
		if err := c.Fill(t.Context(), rows, hot, testNodes); err != nil {
			t.Fatal(err)
		}
		if !c.Filled() || c.Rows() != keep {
			t.Fatalf("%d rows are on the device, not %d", c.Rows(), keep)
		}
		check(t, c, late)
		want := c.Used()
		for i := range 5 {
			nodes := someNodes(100+300*i, i)
			before := rows.BytesRead()
			b, whole := batchOf(t, c, true, nodes), batchOf(t, c, false, slices.Clone(nodes))
			missed := uint64(0)
			for _, v := range nodes {
				if int(v) >= keep {
					missed++
				}
			}
			if read, all := rows.BytesRead()-before, uint64(len(nodes)); read !=
				4*testDim*(missed+all) {
				t.Errorf("%d bytes were read for %d rows that miss and %d", read, missed, all)
			}
			check(t, c, whole)
			check(t, c, b)
			want.Rows, want.Hits = want.Rows+2*uint64(len(nodes)),
				want.Hits+2*(uint64(len(nodes))-missed)
		}
		if got := c.Used(); got != want {
			t.Errorf("rows and hits are counted as %+v, not %+v", got, want)
		}
	}
}

// TestFailedFill: rows that cannot be read leave the cache as it was.
func TestFailedFill(t *testing.T) {
	c, rows, budget := mustOpen(t)
	bad := layout.NodeID(7)
	rows.Fail = &bad
	before := budget.Used()
	if err := c.Fill(context.Background(), rows, []sample.NodeID{3, 7}, testNodes); err == nil {
		t.Fatal("rows that cannot be read are kept")
	}
	if c.Filled() {
		t.Error("the cache is filled")
	}
	// The CPU cannot give memory of parameters back: it has some for two rows.
	if n := budget.Used() - before; n > 1<<16 {
		t.Errorf("%d bytes are counted", n)
	}
	rows.Fail = nil
	check(t, c, batchOf(t, c, true, someNodes(50, 0)))
}

// TestPlacedAgain: when all rows of a batch are gathered a second time into the same memory, they
// are placed anew, and the first places are given up.
func TestPlacedAgain(t *testing.T) {
	c, rows, _ := mustOpen(t)
	if err := c.Fill(t.Context(), rows, someNodes(60, 3), testNodes); err != nil {
		t.Fatal(err)
	}
	b := batchOf(t, c, false, someNodes(200, 0))
	b.Dense.NodeIDs = someNodes(190, 7)
	b.X = b.X[:190*testDim]
	b.Prepared = newBatch(b.Dense.NodeIDs, 1).Prepared
	if err := c.host.Gather(t.Context(), b.Dense.NodeIDs, b.X); err != nil {
		t.Fatal(err)
	}
	if err := c.Place(b); err != nil {
		t.Fatal(err)
	}
	check(t, c, b)
}
