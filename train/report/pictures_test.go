package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdb/internal/dense"
	"gdb/internal/rng"
)

// TestPrincipalFindsThePlane: points that lie in a plane of a space of many dimensions have their
// distances in it, the longer axis first.
func TestPrincipalFindsThePlane(t *testing.T) {
	const dim, nodes = 20, 300
	draw := rng.NewStream(8)
	var axes [2][dim]float64 // orthogonal, of length 1
	for k := range dim {
		axes[0][k], axes[1][k] = 1/math.Sqrt(dim), float64(1-2*(k%2))/math.Sqrt(dim)
	}
	var at [nodes][2]float64
	rows := make([][]float32, nodes)
	for i := range rows {
		at[i] = [2]float64{8 * (draw.Float64() - 0.5), 2 * (draw.Float64() - 0.5)}
		rows[i] = make([]float32, dim)
		for k := range dim {
			rows[i][k] = float32(5 + at[i][0]*axes[0][k] + at[i][1]*axes[1][k])
		}
	}
	got, shares := principal(rows)
	if shares[0] < 0.9 || shares[0] > 0.97 || math.Abs(shares[0]+shares[1]-1) > 1e-4 {
		t.Errorf("shares %v", shares)
	}
	for i := 1; i < nodes; i++ {
		want := math.Hypot(at[i][0]-at[0][0], at[i][1]-at[0][1])
		is := math.Hypot(got[0][i]-got[0][0], got[1][i]-got[1][0])
		if math.Abs(is-want) > 1e-3 {
			t.Fatalf("the distance of point %d is %g, want %g", i, is, want)
		}
		if long := math.Abs(got[0][i] - got[0][0]); math.Abs(long-
			math.Abs(at[i][0]-at[0][0])) > 0.3 {
			t.Fatalf("point %d is %g along the first axis", i, long)
		}
	}
}

// TestPrincipalOfNothing: without rows, columns or differences there are zeros.
func TestPrincipalOfNothing(t *testing.T) {
	for _, rows := range [][][]float32{nil, {{}, {}}, {{1, 2}, {1, 2}}, {{3}}} {
		got, shares := principal(rows)
		if shares != [2]float64{} || len(got[0]) != len(rows) {
			t.Errorf("%v: %v, shares %v", rows, got, shares)
		}
	}
	got, shares := principal([][]float32{{1}, {3}, {5}})
	if shares[0] != 1 || shares[1] != 0 || math.Abs(math.Abs(got[0][0])-2) > 1e-6 {
		t.Errorf("one column: %v, shares %v", got, shares)
	}
}

// TestGroups: the most frequent names have groups of their own, in this order.
func TestGroups(t *testing.T) {
	var of []string
	for k := range 12 {
		of = append(of, slices.Repeat([]string{fmt.Sprintf("c%02d", k)}, 20-k)...)
	}
	of = append(of, "", "c00")
	names, group := groups(of)
	if len(names) != groupsMost+2 || names[0] != "c00" || names[8] != "c08" ||
		names[9] != groupOther || names[10] != groupNone {
		t.Fatalf("names %q", names)
	}
	last := len(of) - 1
	if group[0] != 0 || group[last] != 0 || group[last-1] != 10 || group[last-2] != 9 ||
		group[20] != 1 {
		t.Errorf("groups %v", group)
	}
	if names, group := groups([]string{"", ""}); names != nil || !slices.Equal(group, []int{0, 0}) {
		t.Errorf("of nothing: %q, %v", names, group)
	}
}

// TestEmbeddingPicture has a mark for each node, and names classes beside their marks.
func TestEmbeddingPicture(t *testing.T) {
	e := &Embedding{From: "learned vectors", Rows: [][]float32{{1, 0}, {2, 0}, {3, 5}},
		Of: []string{"<b>", "", "<b>"}}
	svg := string(e.SVG())
	for _, want := range []string{"Vectors of 3 nodes", "learned vectors", "&lt;b&gt;", groupNone,
		"first component (", "% of the variance)"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	circles := strings.Count(svg, "<circle")                              // of the first group
	squares := strings.Count(svg, `<path d="M-.9`)                        // of the second
	if circles != 2+1 || squares != 1+1 || strings.Contains(svg, "NaN") { // with the legend
		t.Errorf("%d circles, %d squares in\n%s", circles, squares, svg)
	}
}

// TestNeighborhoodPicture: edges lead from neighbors to nodes, and names cannot act.
func TestNeighborhoodPicture(t *testing.T) {
	// Node s has the neighbors a and b, and a has the neighbor c: Δ0 = {c}, Δ1 = {a, b}, Δ2 = {s}.
	n := &Neighborhood{Lists: &dense.Lists{NodeIDOffsets: []uint32{0, 1, 3, 4},
		NbrOffsets: []uint32{0, 1, 1, 3}, ReprMap: []uint32{0, 1, 2}},
		Names: []string{"c", `"><script>`, "b", "s"}, Of: []string{"x", "y", "x", "x"},
		Link: func(id string) string { return "/node?id=" + id }}
	svg := string(n.SVG())
	for _, want := range []string{"Neighborhood of s", "4 nodes and 3 edges",
		"<title>c: x</title>", `href="/node?id=b"`, `href="/node?id=&quot;&gt;&lt;script&gt;"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	arrows := regexp.MustCompile(`stroke-opacity="0.49"`).FindAllString(svg, -1)
	if len(arrows) != 3 || strings.Contains(svg, "<script") {
		t.Errorf("%d arrows in\n%s", len(arrows), svg)
	}
	for at, want := range []int{2, 1, 1, 0} {
		if got := hops(n.Lists, uint32(at)); got != want {
			t.Errorf("node %d is %d hops away, want %d", at, got, want)
		}
	}
}
