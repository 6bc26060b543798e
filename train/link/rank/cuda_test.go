//go:build cuda && cgo && linux

package rank_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/cuda/cudatest"
	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// TestRanksOnDevice: vectors of small whole numbers have scores without rounding, many of them
// equal: all ranks are the CPU's, from rows that the device has, that are sent, that come by
// partition, and of drawn candidates.
func TestRanksOnDevice(t *testing.T) {
	cudatest.Start(t, "../../../compute/backend/cuda/kernels/kernels.cu")
	be, err := cuda.Open(backend.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	edges, train := randomEdges(1, 60), randomEdges(2, 300)
	known := slices.Concat(edges, train)
	indexed := entities.Indexed{Index: triples.NewIndex(known)}
	for _, name := range []string{"distmult", "complex", "transe"} {
		s, v, _ := newScorer(t, name, 2)
		dealt, there := dealRows(v, 4, known), mustCopy(t, be, v)
		for _, c := range []struct {
			what string
			v    rank.Vectors
			rows backend.Tensor
			cfg  rank.Config
		}{
			{"rows of the device", v, there, rank.Config{Known: indexed}},
			{"rows that are sent", v, backend.Tensor{}, rank.Config{}},
			{"rows by partition", dealt, there, rank.Config{Known: dealt, PassBytes: 1 << 30}},
			{"drawn ones", v, there, rank.Config{Known: indexed, Candidates: 9, Seed: 3}},
		} {
			sameOnDevice(t, name+", "+c.what, be, s, c.v, c.rows, edges, c.cfg)
		}
	}
}

// TestRanksOfManyOnDevice: more entities than are scored at once, on the device and sent there.
func TestRanksOfManyOnDevice(t *testing.T) {
	cudatest.Start(t, "../../../compute/backend/cuda/kernels/kernels.cu")
	be, err := cuda.Open(backend.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	s, _, _ := newScorer(t, "distmult", 2)
	rnd, rows := rand.New(rand.NewPCG(5, 5)), make([]float32, 33000*dim)
	for i := range rows {
		rows[i] = float32(rnd.IntN(3) - 1)
	}
	v := entities.InMemory(rows, dim)
	edges := []triples.Triple{{Head: 5, Tail: 32999}, {Head: 32998, Relation: 1, Tail: 40}}
	known := append(slices.Clone(edges), triples.Triple{Head: 5, Tail: 8192},
		triples.Triple{Head: 5, Tail: 32768})
	cfg := rank.Config{Known: entities.Indexed{Index: triples.NewIndex(known)}}
	for _, there := range []backend.Tensor{{}, mustCopy(t, be, v)} {
		sameOnDevice(t, "many", be, s, v, there, edges, cfg)
	}
}

// mustCopy copies the rows of a table to a device.
func mustCopy(t *testing.T, be backend.Backend, v *entities.Table) backend.Tensor {
	t.Helper()
	x, err := be.Params("vectors", len(v.All()))
	if err != nil {
		t.Fatal(err)
	}
	be.Write(x, v.All())
	return x.View(0, v.Count(), dim)
}

// sameOnDevice ranks edges on the CPU and on a device.
//
//lint:parameters what one evaluation is made from
func sameOnDevice(t *testing.T, what string, be backend.Backend, s *rank.Scorer, v rank.Vectors,
	there backend.Tensor, edges []triples.Triple, cfg rank.Config) {
	t.Helper()
	want, err := rank.Ranks(t.Context(), s, v, edges, cfg)
	if err != nil {
		t.Fatal(err)
	}
	on := *s
	on.On, on.Rows = be, there
	got, err := rank.Ranks(t.Context(), &on, v, edges, cfg)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	sameMetrics(t, what+", filtered", got.Metrics, want.Metrics)
	sameMetrics(t, what+", raw", got.Raw, want.Raw)
}
