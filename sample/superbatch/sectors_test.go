package superbatch

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"gdb/blockdev"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// counting sums the bytes of reads of files whose path has a part in it.
type counting struct {
	blockdev.Device
	part  string
	bytes atomic.Int64
}

func (c *counting) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	for _, r := range reqs {
		if strings.Contains(r.File.Path(), c.part) {
			c.bytes.Add(int64(len(r.Buf)))
		}
	}
	return c.Device.ReadBatch(ctx, reqs)
}

// TestReadsAreSectors: read one by one, rows that are far apart cost no more of the disk than the
// sectors that they lie in, and a tenth.
func TestReadsAreSectors(t *testing.T) {
	const scale, dim = 14, 128 // rows of a sector
	graph := sampletest.RMAT(scale, 60000, 5)
	nodes := int(graph.Nodes())
	store := layouttest.Build(t, vfs.NewMem(), "store", layouttest.Graph{Nodes: nodes, Dim: dim,
		Features: make([]float32, nodes*dim)})
	dev := &counting{Device: mustDevice(t), part: "features"}
	rows, err := rowfile.Open(t.Context(), store, dev, store.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	c := testConfigOn(dev.Device)
	c.Rows, c.Nodes, c.Epochs, c.Slots = rows, graph.Nodes(), 4, 50
	c.Order = func(epoch uint64) (*sample.Order, error) {
		return sample.EpochOrder(testTrain(), 8, epoch, 1)
	}
	c.Drawer = drawingAs(func() (*sample.Sampler, error) {
		return sample.NewSampler([]topology.Reader{graph}, sample.Config{Fanout: []int{2, 2}})
	})
	before := dev.bytes.Load()
	l := mustOpen(t, c)
	if _, err := stepHashes(l.Epoch, 0, c.Epochs); err != nil {
		t.Fatal(err)
	}
	s := l.CacheStats()
	sectors := 4 * dim * int64(s.Requests-s.Hits)
	if read := dev.bytes.Load() - before; read < sectors || 10*read > 11*sectors {
		t.Errorf("%d bytes read for %d of sectors with missing rows", read, sectors)
	}
	closeAll(t, l)
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}
