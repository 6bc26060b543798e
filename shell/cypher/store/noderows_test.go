package store_test

import (
	"fmt"
	"math"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLabelsAndFeatures holds that labels and features are the same in columns in memory, which
// statements over all nodes read, and of single nodes, and that none is null.
func TestLabelsAndFeatures(t *testing.T) {
	const nodes, dim, last = 5000, 3, 4999
	g := layouttest.Random(3, nodes, 0)
	g.Features, g.Dim = layouttest.Features(nodes, dim), dim
	g.Classes = layouttest.ClassNames(4)
	ones, sum, multi, numbers := 0, 0.0, 0, 0.0
	for v := range nodes {
		g.Labels = append(g.Labels, int32(v%5)-1)
		if v%5 == 2 {
			ones++
			sum += float64(g.Features[v*dim+1])
		}
	}
	classes := layouttest.Build(t, vfs.NewMem(), "classes", g)
	g.Labels = nil
	for v := range nodes {
		g.Multi = append(g.Multi, [][]int{nil, {}, {1}, {0, 3}}[v%4])
		if v%4 == 3 {
			multi++
		}
	}
	several := layouttest.Build(t, vfs.NewMem(), "several", g)
	g.Multi = nil
	for v := range nodes {
		y := float32(math.NaN())
		if v%3 > 0 {
			y = float32(v) / 4
			numbers += float64(y)
		}
		g.Targets = append(g.Targets, y)
	}
	targets := layouttest.Build(t, vfs.NewMem(), "targets", g)
	const one = " (n {id: 4999}) RETURN n.label, n.f1"
	feature := g.Features[last*dim+1]
	for _, c := range []struct {
		st         *layout.Store
		stmt, want string
	}{
		{classes, "MATCH (n) WHERE n.label = 'class1' RETURN count(*), sum(n.f1)",
			fmt.Sprint(ones, sum)},
		{classes, "MATCH (n) WHERE n.label IS NULL RETURN count(*)", "1000"},
		{classes, "MATCH" + one, fmt.Sprint("class3 ", feature)},
		{several, "MATCH (n) WHERE n.label = 'class0;class3' RETURN count(*)", fmt.Sprint(multi)},
		{several, "MATCH (n) WHERE n.label = '' RETURN count(*)", "1250"},
		{several, "MATCH (n) WHERE n.label IS NULL RETURN count(*)", "1250"},
		{several, "MATCH" + one, fmt.Sprint("class0;class3 ", feature)},
		{targets, "MATCH (n) RETURN sum(n.label), count(n.label)", fmt.Sprint(numbers, 3333)},
		{targets, "MATCH" + one, fmt.Sprint(g.Targets[last], " ", feature)},
		{targets, "MATCH (n) WHERE n.id >= 4999 RETURN n.label, n.f1",
			fmt.Sprint(g.Targets[last], " ", feature)},
	} {
		if got, err := answer(t, c.st, 0, c.stmt); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.stmt, got, err, c.want)
		}
	}
}
