package source_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
)

// TestDryRunCountsLines: without reading it all, a dry run tells how many edges a text file has,
// nearly; of a compressed one the order of magnitude.
func TestDryRunCountsLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const edges = 50_000
	var b strings.Builder
	for range edges {
		fmt.Fprintf(&b, "%d,%d\n", rng.IntN(1e6), rng.IntN(1e6))
	}
	for name, most := range map[string]float64{"e.csv": 1.02, "e.csv.gz": 3} {
		fs := files{name: b.String()}.fs(t)
		for _, undirected := range []bool{false, true} {
			plan, err := ingest.DryRun(context.Background(), fs,
				ingest.Options{Options: source.Options{Sources: []string{name}}, Out: "s",
					Undirected: undirected})
			if err != nil {
				t.Fatal(err)
			}
			about := float64(plan.Info.EdgesAbout)
			if off := math.Abs(math.Log(about / edges)); plan.Edges != 0 || off > math.Log(most) {
				t.Errorf("%s: %d edges, about %g, there are %d", name, plan.Edges, about, edges)
			}
			if plan.DiskBytes < 2*edges || plan.TempBytes < 8*edges {
				t.Errorf("%s: %d bytes of disk, %d for a while", name, plan.DiskBytes,
					plan.TempBytes)
			}
		}
	}
}
