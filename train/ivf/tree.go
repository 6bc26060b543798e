package ivf

import (
	"math"
	"slices"

	"gdb/compute/kernel"
	"gdb/internal/rng"
)

// tree holds the centers of the lists, below those of groups of lists, so that the closest are
// found without a look at all.
type tree struct {
	dim    int
	groups []float32 // centers of groups, (groups, dim)
	first  []uint32  // of the lists of each group, and their number behind the last
	lists  []float32 // centers, (lists, dim)

	groupHalf, listHalf []float32 // halves of the squares of the centers' lengths
}

// count returns the number of lists.
func (t *tree) count() int { return len(t.lists) / t.dim }

// center returns the center of a list.
func (t *tree) center(list uint32) []float32 { return t.lists[int(list)*t.dim:][:t.dim] }

// finish computes what follows of the centers.
func (t *tree) finish() {
	t.groupHalf, t.listHalf = halves(t.groups, t.dim), halves(t.lists, t.dim)
}

// halves returns half of the square of the length of each row.
func halves(rows []float32, dim int) []float32 {
	out := make([]float32, len(rows)/dim)
	for i := range out {
		out[i] = kernel.SquareSum(rows[i*dim:][:dim]) / 2
	}
	return out
}

// treeBytes returns the memory of a tree.
func treeBytes(groups, lists, dim int) int64 {
	return 4 * int64((groups+lists)*(dim+1)+groups+1)
}

const (
	// meansRounds is how often centers are moved to the means of their rows.
	meansRounds = 10
	// groupSample is how many rows the center of a group is learned from, at most.
	groupSample = 512
	// meansRows is how many rows are compared with centers together.
	meansRows = 4096
)

// learner learns a tree.
type learner struct {
	pool   *kernel.Pool
	dim    int
	scores []float32
	of     []uint32 // the center of each row
	sums   []float64
	counts []int
}

// learnTree learns the centers of about as many lists from sampled rows, whose order it changes.
func learnTree(pool *kernel.Pool, sample []float32, dim, lists int, seed uint64) *tree {
	all := len(sample) / dim
	groups := int(math.Ceil(math.Sqrt(float64(lists))))
	l := &learner{pool: pool, dim: dim}
	t := &tree{dim: dim}
	some := sample[:min(all, groups*groupSample)*dim]
	t.groups = l.means(some, groups, rng.Key(seed, 0))
	starts := byGroup(sample, dim, l.assign(sample, t.groups), groups)
	for g := range groups {
		t.first = append(t.first, uint32(t.count()))
		rows := sample[starts[g]*dim : starts[g+1]*dim]
		n := len(rows) / dim
		own := max(1, (n*lists+all/2)/max(1, all))
		if n <= own {
			own = 1
		}
		if n == 0 {
			rows = t.groups[g*dim:][:dim]
		}
		t.lists = append(t.lists, l.means(rows, own, rng.Key(seed, 1, uint64(g)))...)
	}
	t.first = append(t.first, uint32(t.count()))
	t.finish()
	return t
}

// byGroup orders rows by their groups, in place, and returns the first row of each group and the
// number of rows. It changes the numbers of groups to those of places.
func byGroup(rows []float32, dim int, of []uint32, groups int) (starts []int) {
	starts = make([]int, groups+1)
	for _, g := range of {
		starts[g+1]++
	}
	for g := range groups {
		starts[g+1] += starts[g]
	}
	next := slices.Clone(starts)
	for i, g := range of {
		of[i] = uint32(next[g])
		next[g]++
	}
	row, other := make([]float32, dim), make([]float32, dim)
	for i := range of {
		copy(row, rows[i*dim:])
		for int(of[i]) != i { // the row in hand goes to its place, and that one's is next
			to := int(of[i])
			copy(other, rows[to*dim:])
			copy(rows[to*dim:][:dim], row)
			row, other = other, row
			of[i], of[to] = of[to], uint32(to)
		}
		copy(rows[i*dim:][:dim], row)
	}
	return starts
}

// means returns centers by Lloyd's algorithm, which begins at rows drawn by seed.
func (l *learner) means(rows []float32, count int, seed uint64) []float32 {
	n := len(rows) / l.dim
	order := rng.NewPermutation(uint64(n), seed)
	row := func(i int) []float32 { return rows[i*l.dim:][:l.dim] }
	centers := make([]float32, 0, count*l.dim)
	for k := range count {
		centers = append(centers, row(int(order.At(uint64(k%n))))...)
	}
	l.sums = append(l.sums[:0], make([]float64, count*l.dim)...)
	l.counts = append(l.counts[:0], make([]int, count)...)
	for round := range meansRounds {
		clear(l.sums)
		clear(l.counts)
		for i, k := range l.assign(rows, centers) {
			l.counts[k]++
			sum := l.sums[int(k)*l.dim:][:l.dim]
			for j, v := range row(i) {
				sum[j] += float64(v)
			}
		}
		for k, members := range l.counts {
			c := centers[k*l.dim:][:l.dim]
			if members == 0 { // it begins again at another row
				copy(c, row(int(order.At(uint64((round*count+k)%n)))))
				continue
			}
			for j := range c {
				c[j] = float32(l.sums[k*l.dim+j] / float64(members))
			}
		}
	}
	return centers
}

// assign returns the center that is nearest to each row. The result is valid until the next call.
func (l *learner) assign(rows, centers []float32) []uint32 {
	n, count := len(rows)/l.dim, len(centers)/l.dim
	half := halves(centers, l.dim)
	if cap(l.of) < n {
		l.of = make([]uint32, n)
	}
	if most := min(n, meansRows) * count; cap(l.scores) < most {
		l.scores = make([]float32, most)
	}
	l.of = l.of[:n]
	for lo := 0; lo < n; lo += meansRows {
		m := min(meansRows, n-lo)
		scores := l.scores[:m*count]
		kernel.GEMMTB(l.pool, scores, rows[lo*l.dim:][:m*l.dim], centers,
			kernel.Shape{M: m, N: l.dim, K: count})
		l.pool.Span(m, 256, func(from, to int) {
			for i := from; i < to; i++ {
				l.of[lo+i] = uint32(nearestOf(scores[i*count:][:count], half))
			}
		})
	}
	return l.of
}

// nearestOf returns the center of the least distance, by products with centers and the halves of
// their squares; the first of equal ones.
func nearestOf(products, half []float32) int {
	best, at := float32(math.Inf(-1)), 0
	for k, v := range products {
		if v -= half[k]; v > best {
			best, at = v, k
		}
	}
	return at
}
