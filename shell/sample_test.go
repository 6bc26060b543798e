package shell

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// edgesOf writes a batch as SHOW edges does.
func edgesOf(d *sample.Dense) string {
	out, first := "hop,node,neighbor\n", d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		for v := d.NodeIDOffsets[hop]; v < d.NodeIDOffsets[hop+1]; v++ {
			for _, u := range d.Nbrs[d.NbrOffsets[v-first]:d.NbrOffsets[v-first+1]] {
				out += fmt.Sprintf("%d,%d,%d\n", d.Layers()-hop+1, d.NodeIDs[v], u)
			}
		}
	}
	return out
}

func splitNodes(t *testing.T, store *layout.Store, name string) (nodes []layout.NodeID) {
	t.Helper()
	set, err := store.Split(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range set.ToArray() {
		nodes = append(nodes, layout.NodeID(v))
	}
	return nodes
}

// TestSampleIsTheBatchOfTraining compares SAMPLE … SIZE with the pipeline that feeds a training:
// the same batches, whatever the epoch, with the session's seed and with one of its own.
func TestSampleIsTheBatchOfTraining(t *testing.T) {
	g := layouttest.Random(3, 400, 5000)
	g.Splits = layouttest.Splits(g.Nodes)
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	topo, err := topology.Open(t.Context(), store, dev, layout.In, topology.Options{Resident: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := topo.Close(); err != nil {
			t.Error(err)
		}
	}()
	train := splitNodes(t, store, "train")
	for _, c := range []struct {
		clause string
		seed   uint64
	}{{"", 1}, {"SEED 99", 99}} {
		for epoch := range uint64(3) {
			order, err := sample.EpochOrder(train, c.seed, epoch, 100)
			if err != nil {
				t.Fatal(err)
			}
			p, err := sample.NewPipeline(t.Context(), sample.PipelineConfig{Order: order,
				Drawer: func(workers int) (sample.Drawer, error) {
					return sample.NewSamplers(workers, func() (*sample.Sampler, error) {
						return sample.NewSampler([]topology.Reader{topo},
							sample.Config{Fanout: []int{4, 3}, Seed: c.seed})
					})
				}})
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; ; i++ {
				b, err := p.Next(t.Context())
				if errors.Is(err, io.EOF) {
					if i != 4 {
						t.Errorf("%d batches, want 3", i-1)
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				stmt := fmt.Sprintf("SAMPLE SPLIT train FANOUT 4,3 SIZE 100 EPOCH %d BATCH %d %s "+
					"SHOW edges", epoch+1, i, c.clause)
				if got := mustRun(t, store, dev, "csv", stmt); got != edgesOf(&b.Dense) {
					t.Errorf("%s is not what the pipeline sampled", stmt)
				}
				b.Release()
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSampleDefaultsToTheFirstBatch holds the defaults of EPOCH and BATCH.
func TestSampleDefaultsToTheFirstBatch(t *testing.T) {
	g := layouttest.Random(3, 100, 2000)
	g.Splits = layouttest.Splits(g.Nodes)
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	base := "SAMPLE SPLIT train FANOUT 4 SHOW edges"
	first := mustRun(t, store, dev, "csv", base)
	for _, clause := range []string{" EPOCH 1", " BATCH 1", " EPOCH 1 BATCH 1", " SEED 1"} {
		if mustRun(t, store, dev, "csv", base+clause) != first {
			t.Errorf("%s is not the default", clause)
		}
	}
	for _, clause := range []string{" EPOCH 2", " BATCH 2", " SEED 2"} {
		if mustRun(t, store, dev, "csv", base+clause) == first {
			t.Errorf("%s changes nothing", clause)
		}
	}
	if strings.Count(first, "\n") < 50 {
		t.Errorf("a sample of %d lines", strings.Count(first, "\n"))
	}
}

// TestSampleByWeight compares SAMPLE … STRATEGY weighted, over a paged reader, with a sampler over
// one that holds the weights.
func TestSampleByWeight(t *testing.T) {
	g := layouttest.Random(5, 200, 9000)
	g.Weighted, g.Splits = true, layouttest.Splits(g.Nodes)
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	topo, err := topology.Open(t.Context(), store, dev, layout.In,
		topology.Options{Resident: true, Weights: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.NewSampler([]topology.Reader{topo},
		sample.Config{Fanout: []int{4, 3}, Seed: 8, Draw: sample.DrawWeighted})
	if err != nil {
		t.Fatal(err)
	}
	var d sample.Dense
	if err := s.Sample(t.Context(), 1, 2, splitNodes(t, store, "val"), &d); err != nil {
		t.Fatal(err)
	}
	want, k := strings.Split(edgesOf(&d), "\n"), 0
	want[0] += ",weight"
	// Hop 1 is shown first, and stands last in the arrays.
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		lo, hi := d.NodeIDOffsets[hop]-first, d.NodeIDOffsets[hop+1]-first
		for _, w := range d.Weights[d.NbrOffsets[lo]:d.NbrOffsets[hi]] {
			k++
			want[k] += fmt.Sprintf(",%g", w)
		}
	}
	stmt := "SAMPLE SPLIT val FANOUT 4,3 SEED 8 EPOCH 2 BATCH 3 STRATEGY weighted SHOW edges"
	if got := mustRun(t, store, dev, "csv", stmt); got != strings.Join(want, "\n") {
		t.Errorf("%s is not what the sampler drew:\n%s", stmt, got)
	}
	s.Close()
	if err := topo.Close(); err != nil {
		t.Error(err)
	}
}

// TestSampleLatest compares SAMPLE … STRATEGY latest, over a paged reader, with a sampler over one
// that holds the times.
func TestSampleLatest(t *testing.T) {
	g := layouttest.Random(5, 200, 9000)
	g.Timed, g.Splits = true, layouttest.Splits(g.Nodes)
	store, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	topo, err := topology.Open(t.Context(), store, dev, layout.In,
		topology.Options{Resident: true, Times: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.NewSampler([]topology.Reader{topo},
		sample.Config{Fanout: []int{4, 3}, Draw: sample.DrawLatest})
	if err != nil {
		t.Fatal(err)
	}
	var d sample.Dense
	if err := s.Sample(t.Context(), 0, 0, splitNodes(t, store, "val"), &d); err != nil {
		t.Fatal(err)
	}
	stmt := "SAMPLE SPLIT val FANOUT 4,3 STRATEGY latest SHOW edges"
	if got := mustRun(t, store, dev, "csv", stmt); got != edgesOf(&d) {
		t.Errorf("%s is not what the sampler took:\n%s", stmt, got)
	}
	s.Close()
	if err := topo.Close(); err != nil {
		t.Error(err)
	}
}
