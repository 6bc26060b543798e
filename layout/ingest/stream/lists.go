package stream

import (
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/listfile"
)

// ListRun is consecutive lists: entries Off[i] … Off[i+1]-1 belong to Nodes[i], which ascend. The
// first and the last may be parts of lists, whose other entries are in the runs before and after.
type ListRun struct {
	Nodes []layout.NodeID
	listfile.Lists
}

// reset empties the run.
func (r *ListRun) reset() {
	r.Nodes, r.Off, r.Nbrs = r.Nodes[:0], append(r.Off[:0], 0), r.Nbrs[:0]
	r.Types, r.Weights, r.Times = r.Types[:0], r.Weights[:0], r.Times[:0]
}

// begin makes the list of a node the last one.
func (r *ListRun) begin(v layout.NodeID) {
	if n := len(r.Nodes); n == 0 || r.Nodes[n-1] != v {
		r.Nodes, r.Off = append(r.Nodes, v), append(r.Off, uint64(len(r.Nbrs)))
	}
}

// end notes that the last list ends with the last entry.
func (r *ListRun) end() { r.Off[len(r.Off)-1] = uint64(len(r.Nbrs)) }

// Add appends entries from … to-1 of l, at least one, to the list of node v.
func (r *ListRun) Add(v layout.NodeID, l *listfile.Lists, from, to uint64) {
	r.begin(v)
	r.copy(l, from, to)
	r.end()
}

// AddLists appends lists from … to-1 of l, whose first list belongs to node first.
func (r *ListRun) AddLists(first layout.NodeID, l *listfile.Lists, from, to int) {
	at := uint64(len(r.Nbrs)) - l.Off[from]
	for i := from; i < to; i++ {
		if l.Off[i] < l.Off[i+1] {
			r.begin(first + layout.NodeID(i))
			r.Off[len(r.Off)-1] = at + l.Off[i+1]
		}
	}
	r.copy(l, l.Off[from], l.Off[to])
}

func (r *ListRun) copy(l *listfile.Lists, from, to uint64) {
	r.Nbrs = append(r.Nbrs, l.Nbrs[from:to]...)
	if len(l.Types) > 0 {
		r.Types = append(r.Types, l.Types[from:to]...)
	}
	if len(l.Weights) > 0 {
		r.Weights = append(r.Weights, l.Weights[from:to]...)
	}
	if len(l.Times) > 0 {
		r.Times = append(r.Times, l.Times[from:to]...)
	}
}

// MergeIDs appends to the list of node v some entries that carry nothing: those of nbrs and of
// keys, whose low bits are neighbors. Both are sorted, and nbrs are many beside keys.
func (r *ListRun) MergeIDs(v layout.NodeID, nbrs []layout.NodeID, keys []uint64) {
	r.begin(v)
	out := r.Nbrs
	for _, key := range keys {
		nbr, i := layout.NodeID(key), 0
		for i < len(nbrs) && nbrs[i] <= nbr {
			out = append(out, nbrs[i])
			i++
		}
		out, nbrs = append(out, nbr), nbrs[i:]
	}
	r.Nbrs = append(out, nbrs...)
	r.end()
}

// cut moves the entries of the last list that have the ends of the last entry to next.
func (r *ListRun) cut(next *ListRun) {
	last := len(r.Nodes) - 1
	from, to := r.Off[last], r.Off[last+1]
	at := to - 1
	for at > from && r.Nbrs[at-1] == r.Nbrs[to-1] {
		at--
	}
	next.Add(r.Nodes[last], &r.Lists, at, to)
	r.Nbrs, r.Off[last+1] = r.Nbrs[:at], at
	r.Types, r.Weights = r.Types[:min(at, uint64(len(r.Types)))],
		r.Weights[:min(at, uint64(len(r.Weights)))]
	r.Times = r.Times[:min(at, uint64(len(r.Times)))]
	if at == from {
		r.Nodes, r.Off = r.Nodes[:last], r.Off[:last+1]
	}
}

// SortParallel sorts entries with the same ends by what they carry, as records of edges are sorted.
func (c EdgeCodec) SortParallel(r *ListRun) {
	if c.Payload() == 0 {
		return
	}
	for i := range r.Nodes {
		end := r.Off[i+1]
		for k := r.Off[i] + 1; k < end; k++ {
			if r.Nbrs[k] != r.Nbrs[k-1] {
				continue
			}
			from := k - 1
			for k < end && r.Nbrs[k] == r.Nbrs[from] {
				k++
			}
			c.sortGroup(r, from, k)
		}
	}
}

// sortGroup sorts entries from … to-1, which have the same ends.
func (c EdgeCodec) sortGroup(r *ListRun, from, to uint64) {
	width := uint64(1 + c.Payload())
	words := make([]uint64, (to-from)*width)
	var e listfile.Edge
	for k := from; k < to; k++ {
		if len(r.Types) > 0 {
			e.Type = r.Types[k]
		}
		if len(r.Weights) > 0 {
			e.Weight = r.Weights[k]
		}
		if len(r.Times) > 0 {
			e.Time = r.Times[k]
		}
		c.Pack(words[(k-from)*width+1:], e.Type, e.Weight, e.Time, 0, 0)
	}
	extsort.SortGroup(words, int(width))
	for k := from; k < to; k++ {
		c.Unpack(words[(k-from)*width+1:], &e)
		if len(r.Types) > 0 {
			r.Types[k] = e.Type
		}
		if len(r.Weights) > 0 {
			r.Weights[k] = e.Weight
		}
		if len(r.Times) > 0 {
			r.Times[k] = e.Time
		}
	}
}

// listRunEntries is how many entries make a run full. It has more if those of the same ends are
// more.
const listRunEntries = 1 << 14

// ListRuns collects lists, and hands them on in runs.
type ListRuns struct {
	ListRun
	next ListRun // what cut leaves for the next run
	most int     // entries of a full run
	fn   func(*ListRun) error
}

// NewListRuns returns ListRuns that hand runs to fn, which may exchange the memory of a run for
// that of another.
func NewListRuns(fn func(*ListRun) error) *ListRuns {
	r := &ListRuns{fn: fn, most: listRunEntries}
	r.reset()
	r.next.reset()
	return r
}

// Pass hands the run on if it is full. Entries with the same ends that carry values stay in one
// run.
func (r *ListRuns) Pass() error {
	if len(r.Nbrs) < r.most {
		return nil
	}
	if len(r.Types)+len(r.Weights)+len(r.Times) > 0 {
		r.cut(&r.next)
	}
	r.most = max(listRunEntries, 2*len(r.next.Nbrs))
	if len(r.Nbrs) > 0 {
		if err := r.fn(&r.ListRun); err != nil {
			return err
		}
		r.reset()
	}
	r.ListRun, r.next = r.next, r.ListRun
	return nil
}

// Flush hands on what is left.
func (r *ListRuns) Flush() error {
	if len(r.Nbrs) == 0 {
		return nil
	}
	err := r.fn(&r.ListRun)
	r.reset()
	return err
}
