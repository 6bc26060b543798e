package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"testing"

	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/runs"
)

// skewed returns a graph in which a batch of lawConfig takes a large part of the features, whose
// rows are wide, and most edges begin in few nodes.
func skewed() layouttest.Graph {
	const nodes, edges, dim, classes = 8000, 400000, 768, 5
	draw := rng.NewStream(3)
	g := layouttest.Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Features: make([]float32, nodes*dim), Splits: map[string][]layout.NodeID{}}
	for k := range classes {
		g.Classes = append(g.Classes, fmt.Sprint("c", k))
	}
	for i := range g.Features {
		g.Features[i] = float32(i%17) / 17
	}
	for range edges {
		src := draw.Below(1 + draw.Below(nodes)) // the lower, the more
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(src),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % classes)
		switch {
		case v%32 == 5:
			g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
		case v%64 == 6:
			g.Splits["val"] = append(g.Splits["val"], layout.NodeID(v))
		}
	}
	return g
}

func lawConfig() Config {
	c := testConfig()
	c.Fanout, c.Batch, c.Epochs, c.EvalEvery = []int{6, 6, 6}, 60, 2, 2
	return c
}

// leastOf is the least memory that a refusal names, in bytes.
func leastOf(err error) int64 {
	m := regexp.MustCompile(`at least (\d+)MiB`).FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n << 20
}

// TestMemoryIsALaw: from the least memory that is accepted upwards, every plan is kept to: batches
// load, and a run trains and evaluates, without a budget error. What is refused is refused by the
// plan, with a least that is accepted.
func TestMemoryIsALaw(t *testing.T) {
	if testing.Short() {
		t.Skip("loads with forty bounds")
	}
	s := mustBuild(t, skewed())
	run := 0
	for _, cache := range []string{"auto", "none", "static", "sieve", runs.CacheBelady} {
		for _, load := range []bool{true, false} {
			c := lawConfig()
			c.Cache, c.LoadOnly, c.Memory = cache, load, 1<<20
			least := leastMemory(t, s, c)
			for _, more := range []int64{0, 1, 4, 12} {
				c.Memory = least + more<<20
				run++
				c.Run = fmt.Sprint("run", run)
				if err := loadAll(t, s, c); err != nil {
					t.Errorf("cache %s, load only %v, %d MiB: %v", cache, load, c.Memory>>20, err)
				}
			}
		}
	}
}

// leastMemory asks with less and less unreasonable sizes until one is accepted.
func leastMemory(t *testing.T, s *layout.Store, c Config) int64 {
	t.Helper()
	var err error
	for range 5 {
		if _, err = MakePlan(context.Background(), s, mustDevice(t), c); err == nil {
			return c.Memory
		}
		n := leastOf(err)
		if n <= c.Memory {
			break
		}
		c.Memory = n
	}
	t.Fatalf("cache %s, load only %v, %d MiB: %v", c.Cache, c.LoadOnly, c.Memory>>20, err)
	return 0
}

// loadAll loads all batches, and unless nothing else is asked for trains on them, and does a run.
func loadAll(t *testing.T, s *layout.Store, c Config) (err error) {
	t.Helper()
	ctx, dev := context.Background(), mustDevice(t)
	if !c.LoadOnly {
		_, err := Run(ctx, s, dev, c, nil)
		return err
	}
	l, err := OpenLoader(ctx, s, dev, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for epoch := 0; epoch < c.Epochs; {
		b, err := l.Next(ctx)
		if errors.Is(err, io.EOF) {
			epoch++
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, l.Plan())
		}
		b.Release()
	}
	return nil
}
