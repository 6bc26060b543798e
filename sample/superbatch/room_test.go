package superbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"gdb/sample"
)

// sizesOf returns the sizes of the largest batch of a training.
func sizesOf(t *testing.T, c Config) (s Sizes) {
	t.Helper()
	for e := c.Epoch; e < c.Epochs; e++ {
		o, err := c.Order(e)
		if err != nil {
			t.Fatal(err)
		}
		p, err := sample.NewPipeline(context.Background(),
			sample.PipelineConfig{Drawer: drawerOf(c), Order: o})
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := p.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			d := &b.Dense
			s.Nodes = max(s.Nodes, int64(len(d.NodeIDs)))
			s.Inner = max(s.Inner, int64(len(d.NodeIDs))-int64(d.NodeIDOffsets[1]))
			s.Edges = max(s.Edges, int64(len(d.Nbrs)))
			b.Release()
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSlotsGiveWay: where batches are larger than was planned the cache has fewer slots, and
// batches are the same, whatever phases do and however rows are used.
func TestSlotsGiveWay(t *testing.T) {
	base := testConfig(t)
	want, largest := wantHashes(t, base), sizesOf(t, base)
	for i, less := range []int64{0, 1, 3, 12, 40, largest.Nodes - 1} {
		for _, way := range []string{"turns", "kept", "overlap", "in place"} {
			t.Run(fmt.Sprintf("less=%d/%s", less, way), func(t *testing.T) {
				c := testConfig(t)
				c.Slots, c.Batches = 900, []int{5, 0, 7}[i%3]
				c.Planned = largest
				c.Planned.Nodes -= less
				fits := true
				switch way {
				case "kept":
					c.SlotsKept = 300
				case "overlap":
					c.Overlap = true
				case "in place":
					c.InPlace = true
					// Rows in place need a slot for each of a batch.
					fits = c.slotsFor(&superbatch{nodesMost: int(largest.Nodes),
						innerMost: int(largest.Inner)}, testDim) >= int(largest.Nodes)
				}
				l := mustOpen(t, c)
				got, err := stepHashes(l.Epoch, 0, c.Epochs)
				switch {
				case !fits && (err == nil || !strings.Contains(err.Error(), "do not fit")):
					t.Errorf("there are too few slots: %v", err)
				case fits && (err != nil || !slices.Equal(got, want)):
					t.Errorf("%d of %d batches, %v", len(got), len(want), err)
				case fits && (l.slots.have < c.Slots) != (less > 0):
					t.Errorf("%d of %d slots are left", l.slots.have, c.Slots)
				}
				closeAll(t, l)
				if n := c.Budget.Used(); n != 0 {
					t.Errorf("%d bytes are counted in the end", n)
				}
			})
		}
	}
}
