package match

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/words"
)

// matchEdge holds what an edge of a match carries.
type matchEdge struct {
	edgeType uint16
	weight   float32
	time     int64
}

// matchRow is a match, or the part of one that was found so far. It has a node for each node of the
// pattern, in the order in which they are visited, and an edge for each hop of length 1.
type matchRow struct {
	nodes [lang.MatchSteps + 1]layout.NodeID
	edges [lang.MatchSteps]matchEdge
}

// matchBatch is how many matches are extended together. Each takes 0.2 KiB at every hop.
const matchBatch = 1024

// matcher runs a MATCH. From the anchored end it extends matches hop by hop, depth first in
// batches, so that memory does not grow with the number of matches.
type matcher struct {
	p *plan
	x *exec.Execution
	q *lang.MatchQuery // the pattern turned round, if the search begins at its last node
	// dirs and types have an entry for each hop: the directions of the lists to follow, and the
	// number of the edge type, or -1 for all types.
	dirs  [][]layout.Direction
	types []int
	// allowed and same have an entry for each node: the nodes that it can be, or nil for all; and
	// the place of the first node with the same name, or -1.
	allowed []*graph.Bits
	same    []int
	out     *matchOutput
	more    bool
	columns map[string]int // the columns of the features, by the properties that name them
}

// newMatchers returns a matcher for each end at which the search can begin: each end that is
// anchored and from which the store has the lists. The better end comes first: one that is a single
// node before one that is a split, and otherwise the left end.
func newMatchers(p *plan) (found []*matcher, err error) {
	x := p.x
	q := x.Operand.Match
	choices := []*lang.MatchQuery{q, q.Turned()}
	if last := q.Nodes[len(q.Nodes)-1]; last.Ref != nil && q.Nodes[0].Ref == nil {
		slices.Reverse(choices)
	}
	var failed error
	for _, c := range choices {
		if !c.Nodes[0].Anchored() {
			continue
		}
		m := &matcher{p: p, x: x, q: c, more: true}
		var err error
		for _, h := range c.Hops {
			dirs := x.Graph.HopDirections(h.Dir)
			if e := x.Graph.CheckDirections(dirs); e != nil && err == nil {
				err = e
			}
			m.dirs = append(m.dirs, dirs)
		}
		if err == nil {
			if err := m.resolveTypes(); err != nil {
				return nil, err
			}
			found = append(found, m)
		} else if failed == nil {
			failed = err
		}
	}
	if len(found) == 0 {
		return nil, failed
	}
	return found, nil
}

func (m *matcher) resolveTypes() error {
	for _, h := range m.q.Hops {
		number := -1
		if h.EdgeType != "" {
			var err error
			if number, err = m.x.Graph.EdgeType(h.EdgeType); err != nil {
				return err
			}
		}
		m.types = append(m.types, number)
	}
	return m.checkProps()
}

// checkProps returns an error for a property that the store does not have.
func (m *matcher) checkProps() error {
	meta := m.x.Graph.Meta()
	has := map[string]bool{"type": len(meta.EdgeTypes) > 0, "weight": meta.Weighted,
		"time": meta.Timestamped}
	m.columns = map[string]int{}
	for _, e := range m.q.Exprs() {
		switch {
		case e.OfEdge && !has[e.Prop]:
			return fmt.Errorf("%s: the edges of this store have no %ss", e.Text, e.Prop)
		case e.OfEdge || e.Prop == "" || e.Prop == "id":
		case e.Prop == "label" && meta.Labels == nil:
			return fmt.Errorf("%s: this store holds no labels", e.Text)
		case e.Prop == "label":
		default:
			if err := m.findColumn(&e); err != nil {
				return err
			}
		}
	}
	return nil
}

// findColumn finds the column of the features that a property names.
func (m *matcher) findColumn(e *lang.MatchExpr) error {
	meta := m.x.Graph.Meta()
	if _, found := m.columns[e.Prop]; found {
		return nil
	}
	if len(meta.Features) == 0 {
		return fmt.Errorf("%s: a node has id and label: this store holds no features", e.Text)
	}
	columns := meta.FeatureColumns(meta.Features[0])
	k, found := columns.Index(e.Prop)
	if !found && columns.Named() {
		return fmt.Errorf("%s: a node has id, label and features, of which none is called %s%s; "+
			"DESCRIBE lists them", e.Text, words.Quoted(e.Prop),
			words.Near(e.Prop, append(columns.Names(), "id", "label")))
	}
	if !found {
		return fmt.Errorf("%s: a node has id, label and features f0 to f%d", e.Text,
			meta.Features[0].Dim-1)
	}
	m.columns[e.Prop] = k
	return nil
}

// hopDetail says how a hop of the pattern is followed.
func (m *matcher) hopDetail(hop int) string {
	detail := m.x.ListsDetail(m.dirs[hop], m.types[hop])
	if h := m.q.Hops[hop]; h.Most > 1 {
		detail += fmt.Sprintf(", %d to %d hops", h.Least, h.Most)
	}
	return detail
}

// anchorsBehind returns the anchors except the one where the search begins.
func (m *matcher) anchorsBehind() (out []string) {
	for _, n := range m.q.Nodes[1:] {
		switch {
		case n.Ref != nil:
			out = append(out, n.Ref.Text())
		case n.Split != "":
			out = append(out, "split "+n.Split)
		}
	}
	return out
}

// begin extends matches from the nodes where the pattern begins.
func (m *matcher) begin(ctx context.Context) error {
	rows := make([]matchRow, 0, matchBatch)
	return m.allowed[0].Each(func(nodes []layout.NodeID) (bool, error) {
		for len(nodes) > 0 && m.more {
			rows = rows[:0]
			for _, v := range nodes[:min(len(nodes), matchBatch)] {
				r := matchRow{}
				r.nodes[0] = v
				rows = append(rows, r)
			}
			nodes = nodes[len(rows):]
			if err := m.extend(ctx, rows, 0, 0); err != nil {
				return false, err
			}
		}
		return m.more, nil
	})
}

// findSame finds, for each node of the pattern, the first node with the same name.
func (m *matcher) findSame() {
	for _, n := range m.q.Nodes {
		m.same = append(m.same, slices.IndexFunc(m.q.Nodes, func(o lang.MatchNode) bool {
			return n.Name != "" && o.Name == n.Name
		}))
	}
}

// resolve finds the nodes that the anchors allow, and the nodes that have the same name.
func (m *matcher) resolve(ctx context.Context) error {
	m.findSame()
	for i, n := range m.q.Nodes {
		m.allowed = append(m.allowed, nil)
		if !n.Anchored() {
			continue
		}
		find := m.p.anchor
		if i > 0 {
			find = exec.FindAs(m.p.anchors, anchorSet(&n))
		}
		nodes, err := find.Nodes(ctx)
		if err != nil {
			return err
		}
		m.allowed[i] = graph.NewBits(m.x.Graph.Budget)
		if err := m.allowed[i].Add(nodes); err != nil {
			return err
		}
	}
	return nil
}

func (m *matcher) free() {
	for _, s := range m.allowed {
		if s != nil {
			s.Free()
		}
	}
}

// fits reports whether node v can stand at a place of a match.
func (m *matcher) fits(r *matchRow, place int, v layout.NodeID) bool {
	if set := m.allowed[place]; set != nil && !set.Contains(uint32(v)) {
		return false
	}
	first := m.same[place]
	return first < 0 || first == place || r.nodes[first] == v
}

// extend goes on with matches that have all nodes up to a hop and have taken steps steps of that
// hop. After the first step, the place of the hop's end holds the node that the match has reached.
func (m *matcher) extend(ctx context.Context, rows []matchRow, hop, steps int) error {
	if len(rows) == 0 || !m.more {
		return nil
	}
	if hop == len(m.q.Hops) {
		more, err := m.out.take(ctx, rows)
		m.more = m.more && more
		return err
	}
	at := hop
	if steps > 0 {
		at = hop + 1
	}
	slices.SortStableFunc(rows, func(a, b matchRow) int {
		return cmp.Compare(a.nodes[at], b.nodes[at])
	})
	nodes := make([]layout.NodeID, 0, len(rows))
	for i := range rows {
		if v := rows[i].nodes[at]; i == 0 || v != nodes[len(nodes)-1] {
			nodes = append(nodes, v)
		}
	}
	for i, dir := range m.dirs[hop] {
		s := &matchStep{m: m, hop: hop, steps: steps + 1, at: at, rows: rows, noSelf: i > 0}
		err := m.p.hops[hop].Each(ctx, dir, nodes, math.MaxInt64,
			func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
				return s.lists(ctx, part, l)
			})
		if err == nil {
			err = s.flush(ctx)
		}
		if err != nil || !m.more {
			return err
		}
	}
	return nil
}

// stepBytes returns the memory of the matches that are collected at all steps at the same time.
func (m *matcher) stepBytes() int64 {
	steps := 0
	for _, h := range m.q.Hops {
		steps += h.Most
	}
	const lists = 2 * (matchBatch + matchBatch/4) // arrived and onward, and room to grow
	return int64(steps) * lists * int64(unsafe.Sizeof(matchRow{}))
}

// matchStep is one step along the lists of one direction.
type matchStep struct {
	m               *matcher
	hop, steps, at  int
	rows            []matchRow // sorted by the node that they have reached
	arrived, onward []matchRow // matches at the end of the hop, and matches on the way to it
	// noSelf leaves out edges from a node to itself. It is set for the second of two directions,
	// since the first has found these edges.
	noSelf bool
}

// lists extends the matches at some nodes by the lists of these nodes.
func (s *matchStep) lists(ctx context.Context, nodes []layout.NodeID,
	l *listfile.Lists) (bool, error) {
	m, h := s.m, &s.m.q.Hops[s.hop]
	var steps pace.Steps
	for i, v := range nodes {
		first, _ := slices.BinarySearchFunc(s.rows, v, func(r matchRow, v layout.NodeID) int {
			return cmp.Compare(r.nodes[s.at], v)
		})
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			if err := steps.Took(ctx, 1); err != nil {
				return false, err
			}
			if t := m.types[s.hop]; t >= 0 && int(l.Types[k]) != t || s.noSelf && l.Nbrs[k] == v {
				continue
			}
			for j := first; j < len(s.rows) && s.rows[j].nodes[s.at] == v; j++ {
				if err := steps.Took(ctx, 1); err != nil {
					return false, err
				}
				next := s.rows[j]
				next.nodes[s.hop+1] = l.Nbrs[k]
				next.edges[s.hop] = edgeOf(l, k)
				if s.steps >= h.Least && m.fits(&next, s.hop+1, l.Nbrs[k]) {
					s.arrived = append(s.arrived, next)
				}
				if s.steps < h.Most {
					s.onward = append(s.onward, next)
				}
				if len(s.arrived) >= matchBatch || len(s.onward) >= matchBatch {
					if err := s.flush(ctx); err != nil || !m.more {
						return false, err
					}
				}
			}
		}
	}
	return m.more, ctx.Err()
}

// flush hands on the matches that were collected.
func (s *matchStep) flush(ctx context.Context) error {
	s.m.p.hops[s.hop].Emit(len(s.arrived), 0)
	err := s.m.extend(ctx, s.arrived, s.hop+1, 0)
	if err == nil {
		err = s.m.extend(ctx, s.onward, s.hop, s.steps)
	}
	s.arrived, s.onward = s.arrived[:0], s.onward[:0]
	return err
}

func edgeOf(l *listfile.Lists, k uint64) (e matchEdge) {
	if l.Types != nil {
		e.edgeType = l.Types[k]
	}
	if l.Weights != nil {
		e.weight = l.Weights[k]
	}
	if l.Times != nil {
		e.time = l.Times[k]
	}
	return e
}

// narrower returns the matcher that begins with fewer neighbors: m, or other, which begins at the
// other end of the pattern. The returned matcher gets the nodes that m has resolved.
func (m *matcher) narrower(ctx context.Context, other *matcher) (best *matcher, err error) {
	err = m.p.ends.Run(ctx, func(ctx context.Context) error {
		best, err = m.compareEnds(ctx, other)
		return err
	})
	return best, err
}

func (m *matcher) compareEnds(ctx context.Context, other *matcher) (*matcher, error) {
	last := len(m.allowed) - 1
	here, err := m.width(ctx, m.allowed[0])
	if err != nil {
		return m, err
	}
	best, there, text := m, math.Inf(1), ""
	if here > widthLeast {
		if there, err = other.width(ctx, m.allowed[last]); err != nil {
			return m, err
		}
		text = fmt.Sprintf(", %.0f at the other end", max(here, there))
	}
	if there < here {
		other.allowed, m.allowed = m.allowed, nil
		slices.Reverse(other.allowed)
		other.findSame()
		best, here = other, there
	}
	for i, lists := range m.p.hops {
		lists.Detail = best.hopDetail(i)
	}
	m.p.ends.Detail = fmt.Sprintf("begins at %s: %.0f neighbors%s", best.q.Nodes[0].AnchorText(),
		here, text)
	m.p.ends.Emit(int(best.allowed[0].GetCardinality()), 0)
	return best, nil
}

// widthLeast is the number of neighbors up to which the other end is not compared.
const widthLeast = 16

// widthNodes is the number of nodes up to which degrees are looked up to choose an end; for more
// nodes the neighbors are estimated.
const widthNodes = 16

// width returns how many neighbors a set of nodes has in the lists of the first hop.
func (m *matcher) width(ctx context.Context, set *graph.Bits) (sum float64, err error) {
	n := set.GetCardinality()
	for _, dir := range m.dirs[0] {
		if n > widthNodes {
			mean, _ := m.x.Estimates().Degree(dir)
			sum += float64(n) * mean
			continue
		}
		t, err := m.x.Graph.Topology(ctx, dir)
		if err != nil {
			return 0, err
		}
		ses, deg := t.NewSession(), make([]uint32, n)
		err = set.Each(func(nodes []layout.NodeID) (bool, error) {
			return true, ses.Degrees(ctx, nodes, deg)
		})
		ses.Release()
		if err != nil {
			return 0, err
		}
		for _, d := range deg {
			sum += float64(d)
		}
	}
	return sum, nil
}
