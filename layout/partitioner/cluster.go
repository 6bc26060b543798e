package partitioner

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/listfile"
)

// Before nodes are dealt, they may be clustered (Meyerhenke, Sanders and Schulz, "Partitioning
// Complex Networks via Size-constrained Clustering"): each node joins the cluster that most of its
// neighbors are in, if that has room; the clusters are the nodes of a smaller graph, which is
// clustered again, until it hardly shrinks. The smallest graph is dealt, and of each larger one the
// nodes begin where their clusters are.
const (
	// clustersOfPart is how many clusters of full size a partition can have at least.
	clustersOfPart = 32
	// joins is how often each node of a graph may change its cluster.
	joins = 5
	// dealsMost is how often the nodes of a graph of clusters are dealt anew.
	dealsMost = 8
	// shrinksLeast is the share of nodes that a graph of clusters may have at most.
	shrinksLeast = .95
)

// all returns the nodes that the nodes of a graph stand for.
func (g *Graph) all() uint64 {
	if g.sizes == nil {
		return g.Nodes
	}
	return g.stands
}

// size returns how many nodes a node stands for.
func (g *Graph) size(v kv.NodeID) uint32 {
	if g.sizes == nil {
		return 1
	}
	return g.sizes[v]
}

// clusterer clusters the nodes of a graph.
type clusterer struct {
	g     *Graph
	most  uint32   // nodes that a cluster stands for at most
	of    []uint32 // cluster by node
	size  []uint32 // nodes that each cluster stands for
	near  []near   // of the node under way
	node  kv.NodeID
	began bool
	moved int
}

// near is a neighbor's cluster, and the weight of edges to it.
type near struct{ cluster, weight uint32 }

// lists lets the nodes of some lists join clusters, but for the last, whose list may go on.
func (c *clusterer) lists(first kv.NodeID, cont bool, l *listfile.Lists) {
	for i := range len(l.Off) - 1 {
		if i > 0 || !cont {
			c.end()
			c.node, c.began = first+kv.NodeID(i), true
		}
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			if u := l.Nbrs[k]; u != c.node {
				c.near = append(c.near, near{c.of[u], c.g.weight(l, k)})
			}
		}
	}
}

// weight returns how many entries of lists an entry stands for.
func (g *Graph) weight(l *listfile.Lists, k uint64) uint32 {
	if g.sizes == nil {
		return 1
	}
	return uint32(l.Weights[k])
}

// end lets the node whose list ended join the cluster that it has most edges to.
func (c *clusterer) end() {
	if !c.began {
		return
	}
	c.began = false
	slices.SortFunc(c.near, func(a, b near) int { return cmp.Compare(a.cluster, b.cluster) })
	own, size := c.of[c.node], c.g.size(c.node)
	best, most := own, uint32(0)
	for i := 0; i < len(c.near); {
		at, sum := c.near[i].cluster, uint32(0)
		for ; i < len(c.near) && c.near[i].cluster == at; i++ {
			sum += c.near[i].weight
		}
		fits := at == own || c.size[at]+size <= c.most
		if fits && (sum > most || sum == most && at == own) {
			best, most = at, sum
		}
	}
	if best != own {
		c.size[own] -= size
		c.size[best] += size
		c.of[c.node] = best
		c.moved++
	}
	c.near = c.near[:0]
}

// run clusters the nodes, and returns the number of clusters, whose numbers are consecutive then.
func (c *clusterer) run(ctx context.Context) (clusters int, err error) {
	for v := range c.of {
		c.of[v], c.size[v] = uint32(v), c.g.size(kv.NodeID(v))
	}
	for range joins {
		c.moved = 0
		if err := c.g.Scan(ctx, func(first kv.NodeID, cont bool, l *listfile.Lists) error {
			c.lists(first, cont, l)
			return ctx.Err()
		}); err != nil {
			return 0, err
		}
		if c.end(); c.moved == 0 {
			break
		}
	}
	number := c.size // by cluster, from here on
	for i := range number {
		number[i] = math.MaxUint32
	}
	for v, at := range c.of {
		if number[at] == math.MaxUint32 {
			number[at] = uint32(clusters)
			clusters++
		}
		c.of[v] = number[at]
	}
	return clusters, nil
}

// level is a graph of clusters in memory.
type level struct {
	g      Graph
	of     []uint32 // the cluster of each node of the graph below
	off    []uint64
	nbrs   []kv.NodeID
	weight []float32
	held   mem.Account
}

// coarsen clusters the nodes of a graph; nil if it hardly shrinks.
func coarsen(ctx context.Context, g *Graph, opt *Options) (lv *level, err error) {
	lv = &level{held: mem.NewAccount(opt.Budget, "clusters of nodes")}
	if err := lv.held.Add(8 * int64(g.Nodes)); err != nil {
		return nil, err
	}
	c := &clusterer{g: g, of: make([]uint32, g.Nodes), size: make([]uint32, g.Nodes),
		most: uint32(max(1, g.all()/uint64(opt.Parts)/clustersOfPart))}
	n, err := c.run(ctx)
	if err != nil || float64(n) > shrinksLeast*float64(g.Nodes) || n < opt.Parts {
		lv.held.Release()
		return nil, err
	}
	lv.of = c.of
	if err = lv.contract(ctx, g, n); err != nil {
		lv.held.Release()
		return nil, err
	}
	return lv, nil
}

// contract makes the graph of clusters: their lists have a neighbor once.
func (lv *level) contract(ctx context.Context, g *Graph, clusters int) error {
	sizes := make([]uint32, clusters)
	for v, at := range lv.of {
		sizes[at] += g.size(kv.NodeID(v))
	}
	each := func(fn func(from, to uint32, weight uint32)) error {
		return g.Scan(ctx, func(first kv.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				at := lv.of[int(first)+i]
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					if to := lv.of[l.Nbrs[k]]; to != at {
						fn(at, to, g.weight(l, k))
					}
				}
			}
			return ctx.Err()
		})
	}
	lv.off = make([]uint64, clusters+1)
	if err := each(func(at, _, _ uint32) { lv.off[at+1]++ }); err != nil {
		return err
	}
	for i := range clusters {
		lv.off[i+1] += lv.off[i]
	}
	entries := lv.off[clusters]
	if err := lv.held.Add(int64(entries)*16 + int64(clusters)*20); err != nil {
		return err
	}
	all, next := make([]near, entries), slices.Clone(lv.off)
	if err := each(func(at, to, weight uint32) {
		all[next[at]] = near{to, weight}
		next[at]++
	}); err != nil {
		return err
	}
	lv.merge(all)
	lv.g = Graph{Nodes: uint64(clusters), Entries: g.Entries, Scan: lv.scan, sizes: sizes,
		stands: g.all(), Count: []uint64{g.all()}}
	return nil
}

// merge sets the lists from entries, of which those of a list that lead to one neighbor become one.
func (lv *level) merge(all []near) {
	at := uint64(0) // entries that are merged
	for v := range len(lv.off) - 1 {
		list := all[lv.off[v]:lv.off[v+1]]
		slices.SortFunc(list, func(a, b near) int { return cmp.Compare(a.cluster, b.cluster) })
		lv.off[v] = at
		for i, e := range list {
			if i > 0 && e.cluster == all[at-1].cluster {
				all[at-1].weight += e.weight
				continue
			}
			all[at] = e
			at++
		}
	}
	lv.off[len(lv.off)-1] = at
	lv.nbrs, lv.weight = make([]kv.NodeID, at), make([]float32, at)
	for i, e := range all[:at] {
		lv.nbrs[i], lv.weight[i] = kv.NodeID(e.cluster), float32(e.weight)
	}
}

// scan calls fn with all lists.
func (lv *level) scan(_ context.Context,
	fn func(first kv.NodeID, cont bool, l *listfile.Lists) error) error {
	return fn(0, false, &listfile.Lists{Off: lv.off, Nbrs: lv.nbrs, Weights: lv.weight})
}

// dealClusters deals the clusters of a graph, and puts its nodes where their clusters are.
func dealClusters(ctx context.Context, g *Graph, opt *Options, of []uint16) error {
	lv, err := coarsen(ctx, g, opt)
	if err != nil || lv == nil {
		return err
	}
	defer lv.held.Release()
	coarse := make([]uint16, lv.g.Nodes)
	for i := range coarse {
		coarse[i] = none
	}
	if err := dealClusters(ctx, &lv.g, opt, coarse); err != nil {
		return err
	}
	o := *opt
	o.Progress = nil
	if o.Method == GAP {
		o.Method = Fennel
	}
	d, err := newDealer(&lv.g, &o, coarse)
	if err != nil {
		return err
	}
	err = errors.Join(d.begin(ctx), d.run(ctx, dealsMost))
	d.held.Release()
	for v, at := range lv.of {
		of[v] = coarse[at]
	}
	return err
}
