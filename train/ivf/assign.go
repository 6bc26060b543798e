package ivf

import (
	"math"

	"gdb/compute/kernel"
)

const (
	// chunkRows is how many rows are assigned to lists together.
	chunkRows = 4096
	// groupsOpened is of how many groups, those closest to a row, the lists are compared with it.
	groupsOpened = 6
)

// assigner finds the list of each of some rows: the closest one of the closest groups. It may be
// used by one goroutine.
type assigner struct {
	t      *tree
	pool   *kernel.Pool
	opened int
	scores []float32
	rows   []float32 // those that a group's lists are compared with
	groups []uint32  // of each row, the closest first
	starts []uint32  // of the rows of each group in order
	order  []uint32  // rows by group
	best   []float32
	list   []uint32
}

func newAssigner(t *tree) *assigner {
	groups, widest := len(t.groups)/t.dim, 0
	for g := range groups {
		widest = max(widest, int(t.first[g+1]-t.first[g]))
	}
	opened := min(groupsOpened, groups)
	return &assigner{t: t, pool: kernel.NewPool(1), opened: opened,
		scores: make([]float32, chunkRows*max(groups, widest)),
		rows:   make([]float32, chunkRows*t.dim), groups: make([]uint32, chunkRows*opened),
		starts: make([]uint32, groups+1), order: make([]uint32, chunkRows*opened),
		best: make([]float32, chunkRows), list: make([]uint32, chunkRows)}
}

// assignerBytes is the memory of an assigner, and of the products that it packs.
func assignerBytes(t *tree) int64 {
	a := int64(len(t.first))
	widest := int64(0)
	for g := range len(t.first) - 1 {
		widest = max(widest, int64(t.first[g+1]-t.first[g]))
	}
	width := max(a, widest)
	return 4 * (chunkRows*(width+int64(t.dim)+2*groupsOpened+2) + width*int64(t.dim+32))
}

// assign returns the list of each of n rows, at most chunkRows. It is valid until the next call.
func (a *assigner) assign(rows []float32, n int) []uint32 {
	a.open(rows, n)
	dim := a.t.dim
	for i := range n {
		a.best[i] = float32(math.Inf(-1))
		a.list[i] = 0
	}
	for g := range len(a.starts) - 1 {
		own := a.order[a.starts[g]:a.starts[g+1]]
		first, end := int(a.t.first[g]), int(a.t.first[g+1])
		if len(own) == 0 {
			continue
		}
		for i, r := range own {
			copy(a.rows[i*dim:][:dim], rows[int(r)*dim:])
		}
		count := end - first
		kernel.GEMMTB(a.pool, a.scores, a.rows, a.t.lists[first*dim:end*dim],
			kernel.Shape{M: len(own), N: dim, K: count})
		for i, r := range own {
			products := a.scores[i*count:][:count]
			k := nearestOf(products, a.t.listHalf[first:end])
			if v := products[k] - a.t.listHalf[first+k]; v > a.best[r] {
				a.best[r], a.list[r] = v, uint32(first+k)
			}
		}
	}
	return a.list[:n]
}

// open finds the closest groups of each row, and orders rows by group.
func (a *assigner) open(rows []float32, n int) {
	groups := len(a.starts) - 1
	kernel.GEMMTB(a.pool, a.scores, rows, a.t.groups,
		kernel.Shape{M: n, N: a.t.dim, K: groups})
	clear(a.starts)
	for i := range n {
		own := a.groups[i*a.opened:][:a.opened]
		closestGroups(own, a.scores[i*groups:][:groups], a.t.groupHalf)
		for _, g := range own {
			a.starts[g+1]++
		}
	}
	for g := range groups {
		a.starts[g+1] += a.starts[g]
	}
	for i := range n {
		for _, g := range a.groups[i*a.opened:][:a.opened] {
			a.order[a.starts[g]] = uint32(i)
			a.starts[g]++
		}
	}
	copy(a.starts[1:], a.starts[:groups]) // they have moved to the ends
	a.starts[0] = 0
}

// closestGroups fills to with the groups of the least distances, the closest first.
func closestGroups(to []uint32, products, half []float32) {
	var best [groupsOpened]float32
	kept := 0
	for g, v := range products {
		v -= half[g]
		if kept == len(to) && !(v > best[kept-1]) {
			continue
		}
		if kept < len(to) {
			kept++
		}
		at := kept - 1
		for at > 0 && !(best[at-1] >= v) {
			best[at], to[at] = best[at-1], to[at-1]
			at--
		}
		best[at], to[at] = v, uint32(g)
	}
}
