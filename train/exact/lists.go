package exact

import (
	"context"

	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
)

// listEdges is how many list entries are read at a time: enough to keep a disk busy. It takes 1.5
// MiB of buffers, and as much for what entries have besides their neighbors.
const listEdges = 1 << 17

// lists reads whole neighbor lists, in parts of at most listEdges entries however long lists are.
// It may be used by one goroutine.
type lists struct {
	from    topology.Reader
	session topology.Session
	budget  *mem.Budget
	limit   uint64 // entries read at a time
	deg     []uint32
	ends    []uint64 // of each node's list, in the concatenation of all
	off     []uint32
	pos     []uint32
	nbrs    []sample.NodeID

	// These hold, with loops, the entries of a part together with the nodes' own entries.
	loopOff []uint32
	loopIDs []uint32
	loopDeg []uint32

	asked edgesAsked
}

func newLists(t topology.Reader, budget *mem.Budget) *lists {
	return &lists{from: t, session: t.NewSession(), budget: budget, limit: listEdges}
}

// part is a section of the concatenated lists of some nodes: of its deg[i] neighbors, node i has
// nbrs[off[i]:off[i+1]] in it. whole says that the part contains all of the lists.
type part struct {
	off, nbrs []uint32
	deg       []uint32
	edges     program.Edges // what was asked for of its entries
	whole     bool
	// of says to which nodes of the block the lists belong, if these do not follow each other.
	of []uint32
}

// each calls fn with the parts of the nodes' lists, at least one. A part is valid during the call.
// With loops, each list ends with its own node.
func (l *lists) each(ctx context.Context, nodes []sample.NodeID, loops bool,
	fn func(part) error) error {
	n := len(nodes)
	l.deg, l.ends, l.off = mem.Resized(l.deg, n), mem.Resized(l.ends, n), mem.Resized(l.off, n+1)
	err := l.session.Degrees(ctx, nodes, l.deg)
	if err != nil {
		return err
	}
	l.asked.counted = -1
	total := uint64(0)
	for i, d := range l.deg {
		total += uint64(d)
		l.ends[i] = total
	}
	for first := uint64(0); first == 0 || first < total; first += l.limit {
		end := min(first+l.limit, total)
		l.window(first, end)
		if err = l.session.Gather(ctx, l.off, l.pos, l.nbrs); err != nil {
			return err
		}
		p := part{off: l.off, nbrs: mem.View[uint32](mem.BytesOf(l.nbrs)), deg: l.deg,
			whole: end-first == total}
		if p.edges, err = l.edges(ctx, first, end); err != nil {
			return err
		}
		if loops {
			p = l.withLoops(p, nodes, first, end)
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// withLoops adds its own node to each list that ends in a part; the part has the entries [first,
// end) of the concatenated lists. Lists that are empty and come before the first entry end in
// the first part.
func (l *lists) withLoops(p part, nodes []sample.NodeID, first, end uint64) part {
	l.loopOff, l.loopIDs = append(l.loopOff[:0], 0), l.loopIDs[:0]
	for i, v := range nodes {
		l.loopIDs = append(l.loopIDs, p.nbrs[p.off[i]:p.off[i+1]]...)
		if e := l.ends[i]; e <= end && (e > first || e == 0) {
			l.loopIDs = append(l.loopIDs, uint32(v))
		}
		l.loopOff = append(l.loopOff, uint32(len(l.loopIDs)))
	}
	l.loopDeg = mem.Resized(l.loopDeg, len(nodes))
	for i, d := range l.deg {
		l.loopDeg[i] = d + 1
	}
	return part{off: l.loopOff, nbrs: l.loopIDs, deg: l.loopDeg, whole: p.whole}
}

// window sets off and pos for the entries [first, end) of the concatenated lists.
func (l *lists) window(first, end uint64) {
	l.off[0] = 0
	l.pos, l.nbrs = mem.Resized(l.pos, int(end-first)), mem.Resized(l.nbrs, int(end-first))
	for i, e := range l.ends {
		begin := e - uint64(l.deg[i])
		from, to := min(max(begin, first), end), min(max(e, first), end)
		l.off[i+1] = uint32(to - first)
		for k := from; k < to; k++ {
			l.pos[k-first] = uint32(k - begin)
		}
	}
}

const (
	// scanBytes is what reading lists in the order of their file takes.
	scanBytes = 10 << 20
	// scanGap is how many bytes of lists are read over rather than looked for the next one: about
	// what a disk reads in the time of a read.
	scanGap = 16 << 10
	// listBytes is about what an entry takes on disk.
	listBytes = 3
)

// read calls fn with the lists of nodes, which ascend, without what else entries have: with the
// number of the node in nodes and with entries, in one call or in several that follow each other.
// Where nodes are close together, lists are read in the order of the file.
func (l *lists) read(ctx context.Context, nodes []sample.NodeID,
	fn func(i int, nbrs []uint32) error) error {
	first, end := nodes[0], nodes[len(nodes)-1]+1
	span := float64(end-first) * listBytes * float64(l.from.Edges()) / float64(l.from.Nodes())
	if topology.Scans(l.from) && span <= scanGap*float64(len(nodes)) &&
		l.budget.Reserve("reading lists", scanBytes) == nil {
		defer l.budget.Release(scanBytes)
		return l.scan(ctx, nodes, fn)
	}
	return l.each(ctx, nodes, false, func(p part) error {
		for i := range nodes {
			if some := p.nbrs[p.off[i]:p.off[i+1]]; len(some) > 0 {
				if err := fn(i, some); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// scan does the work of read in the order of the file.
func (l *lists) scan(ctx context.Context, nodes []sample.NodeID,
	fn func(i int, nbrs []uint32) error) error {
	at := 0
	return topology.EachInRange(ctx, l.from, nodes[0], nodes[len(nodes)-1]+1,
		func(first sample.NodeID, _ bool, of *listfile.Lists) error {
			nbrs := mem.View[uint32](mem.BytesOf(of.Nbrs))
			for ; at < len(nodes) && nodes[at] < first; at++ {
			}
			for k := at; k < len(nodes); k++ {
				i := int(nodes[k] - first)
				if i >= len(of.Off)-1 {
					break
				}
				if err := fn(k, nbrs[of.Off[i]:of.Off[i+1]]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
}

func (l *lists) close() { l.session.Release() }
