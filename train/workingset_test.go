package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"testing"

	"gdb/layout"
	"gdb/sample"
	"gdb/train/setting"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// workingSet is what the batches of a macro-batch touch, each once.
type workingSet struct {
	features, states *roaring.Bitmap // of which nodes
	entries          map[uint64]bool // that were drawn
}

// bytes returns its size, of features of dim values and states of width.
func (w *workingSet) bytes(dim, width int) float64 {
	return 4 * (float64(w.features.GetCardinality())*float64(dim) +
		float64(w.states.GetCardinality())*float64(width) + float64(len(w.entries)))
}

// add adds a batch. Where rows have sums, those of nodes outside memory are not read.
func (w *workingSet) add(b *sample.Batch, outside func(v sample.NodeID) bool, summed bool) {
	d := &b.Dense
	inner := int(d.NodeIDOffsets[min(1, d.Layers())])
	for i, v := range d.NodeIDs {
		out := outside(v)
		if !out || !summed {
			w.features.Add(uint32(v))
		}
		if out && (summed || i >= inner) {
			w.states.Add(uint32(v))
		}
	}
	if d.Layers() == 0 {
		return
	}
	for i, v := range d.NodeIDs[d.NodeIDOffsets[1]:] {
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			w.entries[uint64(v)<<32|uint64(d.NodeIDs[d.ReprMap[k]])] = true
		}
	}
}

// BenchmarkWorkingSet compares what an eighth of a store in memory touches by pbs, on average of
// forty epochs, with what an eighth of the training nodes do that are sampled at once from the
// whole graph; and both again with sums ahead. The store has partitions; GDB_TEST_SPLIT is train
// unless said:
// GDB_TEST_STORE=ordered.gdb GDB_TEST_SPLIT=train@0 go test -run - -bench WorkingSet ./train
func BenchmarkWorkingSet(b *testing.B) {
	path := os.Getenv("GDB_TEST_STORE")
	if path == "" {
		b.Skip("set GDB_TEST_STORE to a store of partitions")
	}
	s, err := layout.Open(b.Context(), vfs.Default, path)
	if err != nil {
		b.Fatal(err)
	}
	train, err := s.Split(b.Context(), cmp.Or(os.Getenv("GDB_TEST_SPLIT"), "train"))
	if err != nil {
		b.Fatal(err)
	}
	for _, fanout := range [][]int{{10, 10}, {10, 10, 10}} {
		c := setting.Default()
		c.Model, c.Fanout, c.Hidden, c.Run = "sage", fanout, 64, "working-set"
		c.Epochs, c.Batch = 40, (int(train.GetCardinality())+7)/8
		pbs := c
		pbs.Batch, pbs.Strategy = 64, setting.StrategyPBS
		pbs.PartitionsInMemory = max(1, len(s.Meta().Partitions)/8)
		atOnce := sync.OnceValue(func() float64 { return workingSets(b, s, c) })
		b.Run(fmt.Sprintf("layers=%d", len(fanout)), func(b *testing.B) {
			for b.Loop() {
				of := workingSets(b, s, pbs)
				b.ReportMetric(of/1e6, "MB")
				b.ReportMetric(of/atOnce(), "of-sampled-at-once")
			}
		})
		b.Run(fmt.Sprintf("layers=%d/sums", len(fanout)), func(b *testing.B) {
			c, pbs := c, pbs
			c.Precompute, pbs.Precompute = true, true
			for b.Loop() {
				of, same := workingSets(b, s, pbs), workingSets(b, s, c)
				b.ReportMetric(of/1e6, "MB")
				b.ReportMetric(of/atOnce(), "of-sampled-at-once")
				b.ReportMetric(of/same, "of-the-same-with-sums")
			}
		})
	}
}

// setOf tells macro-batches apart: by which partitions are in memory.
func setOf(l *Training) string {
	var set []byte
	bounds := l.s.in.Meta.PartBounds()
	for _, first := range bounds[:len(bounds)-1] {
		set = strconv.AppendBool(set, !l.s.steps.history.Outside(sample.NodeID(first)))
	}
	return string(set)
}

// workingSets returns the mean size of the working sets of a training: of its macro-batches, or
// else of its batches.
func workingSets(t testing.TB, s *layout.Store, c Config) float64 {
	t.Helper()
	l, err := Open(t.Context(), s, mustDevice(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	width := 64 * (len(c.Fanout) - 1)
	sum, sets := 0.0, 0
	for range c.Epochs {
		e, err := l.Epoch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*workingSet{}
		for batch := 0; ; batch++ {
			b, err := e.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			set, outside := strconv.Itoa(batch), func(sample.NodeID) bool { return false }
			if c.Strategy == setting.StrategyPBS {
				set, outside = setOf(l), l.s.steps.history.Outside
			}
			if all[set] == nil {
				all[set] = &workingSet{roaring.New(), roaring.New(), map[uint64]bool{}}
			}
			all[set].add(b, outside, c.Precompute)
			b.Release()
		}
		for _, w := range all {
			sum, sets = sum+w.bytes(l.s.in.Rows.Meta().Dim, width), sets+1
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return sum / float64(sets)
}
