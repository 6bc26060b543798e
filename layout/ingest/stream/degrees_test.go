package stream_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gdb/layout/ingest/stream"
)

// TestCountersAndSorted: counters, and nodes in order, give what counting each degree by itself
// does; some degrees are past 16 and past 17 bits. Of more nodes, counters wait in buckets.
func TestCountersAndSorted(t *testing.T) {
	for _, nodes := range []uint64{1000, 1<<19 + 1<<16 + 5} {
		testCounters(t, nodes)
	}
}

func testCounters(t *testing.T, nodes uint64) {
	r := rand.New(rand.NewPCG(1, 2))
	degree := make([]uint64, nodes)
	for v := range degree {
		degree[v] = r.Uint64N(5) * r.Uint64N(2)
	}
	copy(degree[nodes-10:], []uint64{3, 70000})
	copy(degree[10:], []uint64{65535, 65536, 65537, 131071, 131072, 150000})
	var edges []uint64
	var want stream.DegreeHist
	for v, d := range degree {
		want.Add(d, 1)
		edges = append(edges, slices.Repeat([]uint64{uint64(v)}, int(d))...)
	}
	var s stream.SortedDegrees
	for batch := range slices.Chunk(edges, 777) {
		s.Add(batch)
	}
	if got := s.Hist(nodes); !reflect.DeepEqual(got, want) {
		t.Errorf("in order: %v, want %v", got, want)
	}
	r.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	c, err := stream.NewDegreeCounters(nil, nodes)
	if err != nil {
		t.Fatal(err)
	}
	var ids []uint32
	for batch := range slices.Chunk(edges, 777) {
		if ids = ids[:0]; batch[0]%2 == 0 {
			c.Add(batch)
			continue
		}
		for _, v := range batch {
			ids = append(ids, uint32(v))
		}
		c.AddIDs(ids)
	}
	if got := c.Hist(); !reflect.DeepEqual(got, want) {
		t.Errorf("counters: %v, want %v", got, want)
	}
	if err := c.Free(); err != nil {
		t.Fatal(err)
	}
}

// TestNothing: a graph without edges has nodes of degree 0 only.
func TestNothing(t *testing.T) {
	var s stream.SortedDegrees
	want := stream.DegreeHist{Nodes: []uint64{7}}
	if got := s.Hist(7); !reflect.DeepEqual(got, want) {
		t.Errorf("in order: %v, want %v", got, want)
	}
}

func BenchmarkCounters(b *testing.B) {
	const nodes = 1 << 24
	r := rand.New(rand.NewPCG(1, 2))
	batch := make([]uint64, 1<<16)
	for i := range batch {
		batch[i] = r.Uint64N(nodes)
	}
	c, err := stream.NewDegreeCounters(nil, nodes)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Add(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch)), "ns/edge")
	if err := c.Free(); err != nil {
		b.Fatal(err)
	}
}
