package sample

import (
	"context"
	"testing"

	"gdb/layout"
	"gdb/sample/sampletest"
)

func BenchmarkSample(b *testing.B) {
	scale, edges := 22, uint64(64<<20)
	if testing.Short() {
		scale, edges = 16, 1<<20
	}
	g := sampletest.RMAT(scale, edges, 1)
	s, err := NewSampler([]layout.Topology{g}, Config{Fanout: []int{15, 10, 5}, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	var train []NodeID
	for v := range g.Nodes() {
		train = append(train, NodeID(v))
	}
	order, err := EpochOrder(train, 1, 0, 1000)
	if err != nil {
		b.Fatal(err)
	}
	var d Dense
	var seeds []NodeID
	sum, nodes, i := 0, 0, uint64(0)
	for b.Loop() {
		seeds = order.Seeds(i%order.Batches(), seeds[:0])
		if err := s.Sample(context.Background(), 0, i, seeds, &d); err != nil {
			b.Fatal(err)
		}
		sum += len(d.Nbrs)
		nodes += len(d.NodeIDs)
		i++
	}
	b.ReportMetric(float64(sum)/b.Elapsed().Seconds()/1e6, "Medges/s")
	b.ReportMetric(float64(sum)/float64(i), "edges/batch")
	b.ReportMetric(float64(nodes)/float64(i), "nodes/batch")
}
