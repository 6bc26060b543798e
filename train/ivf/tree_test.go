package ivf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/kernel"
)

// TestByGroup: rows stand together by groups, all of them, and starts says where.
func TestByGroup(t *testing.T) {
	const n, dim, groups = 200, 3, 7
	r := rand.New(rand.NewPCG(1, 1))
	rows, of := make([]float32, n*dim), make([]uint32, n)
	for i := range n {
		of[i] = r.Uint32N(groups)
		rows[i*dim], rows[i*dim+1], rows[i*dim+2] = float32(of[i]), float32(i), -float32(i)
	}
	starts := byGroup(rows, dim, of, groups)
	var seen []int
	for g := range groups {
		for i := starts[g]; i < starts[g+1]; i++ {
			row := rows[i*dim:][:dim]
			if int(row[0]) != g || row[1] != -row[2] {
				t.Errorf("row %d is %v, in group %d", i, row, g)
			}
			seen = append(seen, int(row[1]))
		}
	}
	slices.Sort(seen)
	if len(seen) != n || len(slices.Compact(seen)) != n {
		t.Errorf("%d of %d rows", len(seen), n)
	}
}

// TestAssign: the list of a row is the nearest one of those of the closest groups, for nearly all
// rows the nearest of all, and lists share the rows evenly.
func TestAssign(t *testing.T) {
	const n, dim, lists = 4096, 12, 100
	x := planted(n, dim, 30, 4)
	tree := learnTree(kernel.NewPool(1), slices.Clone(x), dim, lists, 1)
	if tree.count() < lists*3/4 || tree.count() > lists*5/4 {
		t.Errorf("%d lists, want about %d", tree.count(), lists)
	}
	distance := func(row []float32, list int) (sum float64) {
		for j, c := range tree.center(uint32(list)) {
			sum += float64(row[j]-c) * float64(row[j]-c)
		}
		return sum
	}
	same, counts := 0, make([]int, tree.count())
	for i, list := range newAssigner(tree).assign(x, n) {
		row, best := x[i*dim:][:dim], math.Inf(1)
		for k := range tree.count() {
			best = min(best, distance(row, k))
		}
		if distance(row, int(list)) <= best+1e-3 {
			same++
		}
		counts[list]++
	}
	if same < n*97/100 || slices.Max(counts) > 8*n/lists {
		t.Errorf("%d of %d rows have the nearest list; the longest has %d", same, n,
			slices.Max(counts))
	}
}

// TestEstimates: what codes say of closeness is right on average, and near for each vector.
func TestEstimates(t *testing.T) {
	const n, dim = 4000, 16
	x := planted(n, dim, 20, 8)
	for _, by := range Closenesses() {
		m := newMaker(t, by)
		m.build(t, x, dim)
		index := m.open(t)
		s, err := index.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows := slices.Clone(x)
		prepare(rows, dim, by)
		query := rows[7*dim:][:dim]
		found, err := index.run(t.Context(), s, Query{Row: query, Probes: n, Most: n})
		if err != nil || len(found) != n {
			t.Fatal(len(found), err)
		}
		var mean, square, spread, all float64
		for _, f := range found {
			var want float64
			for j, v := range rows[int(f.id)*dim:][:dim] {
				want += float64(v) * float64(query[j])
				if by != Dot {
					want -= float64(v) * float64(v) / 2
				}
			}
			diff := float64(f.score) - want
			mean, square = mean+diff/n, square+diff*diff/n
			all, spread = all+want/n, spread+want*want/n
		}
		index.free <- s
		deviation := math.Sqrt(spread - all*all)
		if math.Abs(mean) > 0.03*deviation || math.Sqrt(square) > 0.2*deviation {
			t.Errorf("%s: estimates are off by %.4f on average, and by %.4f; closenesses deviate "+
				"by %.4f", by, mean, math.Sqrt(square), deviation)
		}
	}
}
