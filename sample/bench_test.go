package sample

import (
	"context"
	"fmt"
	"testing"

	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout/topology"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
)

func BenchmarkSample(b *testing.B) {
	scale, edges := 22, uint64(64<<20)
	if testing.Short() {
		scale, edges = 16, 1<<20
	}
	g := sampletest.RMAT(scale, edges, 1)
	s, err := NewSampler([]topology.Reader{g}, Config{Fanout: []int{15, 10, 5}, Seed: 1})
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

// arrayRows are rows in memory.
type arrayRows []float32

func (arrayRows) Meta() kv.RowsMeta { return kv.RowsMeta{Dim: 128} }

func (arrayRows) BytesRead() uint64 { return 0 }

func (arrayRows) GatherStored(context.Context, []NodeID, []uint32,
	func(read, bytes int64) ([]byte, error)) (bool, error) {
	return false, nil
}

func (r arrayRows) GatherParts(_ context.Context, nodes []NodeID, at []uint32, out []float32,
	_ func([]uint64)) error {
	for i, v := range nodes {
		if at != nil {
			i = int(at[i])
		}
		copy(out[i*128:(i+1)*128], r[int(v)*128:])
	}
	return nil
}

func (r arrayRows) Scan(_ context.Context, first NodeID, n int, out []float32) error {
	copy(out[:n*128], r[int(first)*128:])
	return nil
}

// BenchmarkGather gathers 100 K rows of 512 bytes, uniform over 500 K nodes, of which the caches
// hold half.
func BenchmarkGather(b *testing.B) {
	const nodes, batch = 500_000, 100_000
	rows, ctx := make(arrayRows, nodes*128), context.Background()
	var hot []NodeID
	for v := range NodeID(nodes / 2) {
		hot = append(hot, v)
	}
	for _, policy := range []string{"all", "none", "static", "sieve"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("policy=%s/threads=%d", policy, threads), func(b *testing.B) {
				var f rowcache.Features
				var err error
				opt := rowcache.Options{Bytes: nodes / 2 * 545, Threads: threads}
				switch policy {
				case "all":
					f, err = rowcache.NewResident(ctx, rows, nodes, threads, nil)
				case "none":
					f = rowcache.NewDirect(rows)
				case "static":
					f, err = rowcache.New(ctx, rows, rowcache.NewStatic(hot), opt)
				default:
					f, err = rowcache.New(ctx, rows, rowcache.NewSIEVE(), opt)
				}
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				ids, out := make([]NodeID, batch), make([]float32, batch*128)
				stream := rng.NewStream(1)
				for b.Loop() {
					for i := range ids {
						ids[i] = NodeID(stream.Below(nodes))
					}
					if err := f.Gather(ctx, ids, out); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(batch * 512)
				b.ReportMetric(100*float64(f.Stats().Hits)/float64(f.Stats().Requests), "hit%")
			})
		}
	}
}

// BenchmarkSelect measures one entry of lists of these lengths, 10 of them drawn by weight, or by
// time.
func BenchmarkSelect(b *testing.B) {
	for _, draw := range []string{"weight", "time"} {
		for _, d := range []int{16, 64, 256, 4096} {
			b.Run(fmt.Sprintf("by=%s/entries=%d", draw, d), func(b *testing.B) {
				p := topology.Part{Weights: make([]float32, d), Times: make([]int64, d)}
				for i := range d {
					p.Weights[i] = float32(rng.Key(uint64(i))>>40+1) / (1 << 24)
					p.Times[i] = anyTimes(i)
				}
				c := selection{front: []NodeID{9}, deg: []uint32{uint32(d)}, off: []uint32{0, 10},
					entries: make([]entry, 10), taken: make([]uint32, 1)}
				visit := c.byWeight
				if draw == "time" {
					visit = c.byTime
				}
				for i := 0; b.Loop(); i++ {
					c.key, c.taken[0] = uint64(i), 0
					if err := visit(p); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(d),
					"ns/entry")
			})
		}
	}
}
