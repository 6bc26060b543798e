package rowfile_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// holding is a device that keeps all batches waiting but that with the first rows of the features,
// which is not always the first to come.
type holding struct {
	blockdev.Device
	queued  atomic.Int64 // requests of batches that wait
	release chan struct{}
}

func (h *holding) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	const firstRows = 64 << 10
	if h.release != nil && reqs[0].Off > firstRows {
		h.queued.Add(int64(len(reqs)))
		<-h.release
	}
	return h.Device.ReadBatch(ctx, reqs)
}

// TestReadsGoOnWhileRowsArrive holds that more reads than the queue is deep are asked for while the
// first rows are delivered, and that all rows arrive once, in order.
func TestReadsGoOnWhileRowsArrive(t *testing.T) {
	const nodes, depth = 6000, 128
	g := layouttest.Graph{Nodes: nodes * 24, Dim: 128} // rows of 512 bytes, 12 KiB apart
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	s, dev := layouttest.Build(t, vfs.NewMem(), "s", g), &holding{Device: layouttest.Device(t)}
	rows, err := rowfile.Open(t.Context(), s, dev, s.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	ids, out := make([]layout.NodeID, nodes), make([]float32, nodes*g.Dim)
	for i := range ids {
		ids[i] = layout.NodeID((nodes - 1 - i) * 24)
	}
	dev.release = make(chan struct{})
	arrived := uint64(0)
	err = rows.GatherParts(t.Context(), ids, nil, out, func(keys []uint64) {
		if arrived == 0 {
			for begun := time.Now(); dev.queued.Load() < depth; time.Sleep(time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Errorf("%d reads are queued", dev.queued.Load())
					break
				}
			}
			close(dev.release)
		}
		for _, key := range keys {
			i := uint32(key)
			if key>>32 != arrived*24 || uint64(ids[i]) != key>>32 ||
				out[int(i)*g.Dim] != g.Features[int(ids[i])*g.Dim] {
				t.Fatalf("row %d to arrive is %d of node %d", arrived, i, key>>32)
			}
			arrived++
		}
	})
	if err != nil || arrived != nodes {
		t.Errorf("%d rows arrived: %v", arrived, err)
	}
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}
