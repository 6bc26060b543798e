package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgetable"
	"gdb/layout/edgetable/edgetabletest"
	"gdb/layout/ingest"
	"gdb/layout/listfile"
	"gdb/layout/nodeids"
	"gdb/layout/openfiles"
	"gdb/layout/parts"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// modelEdge is an edge of the model: a store in memory, by ids.
type modelEdge struct {
	src, dst, typ string
	weight, time  int
	note          int // the values of its columns, 0 for none
}

// model is what a store must be: all that is done to the store is done to it, plainly.
type model struct {
	undirected, typed, weighted, timed, both, dense bool
	noted                                           bool // edges have columns

	names   []string // by number
	edges   []modelEdge
	divided *dividedModel // of edges in splits; nil where they are not
	deleted map[string]bool
	next    int // of the id that was never given; ingest gives the first three
}

func newModel(r *rand.Rand) *model {
	m := &model{undirected: r.IntN(2) == 0, typed: r.IntN(3) == 0, both: r.IntN(2) == 0,
		dense: r.IntN(3) == 0, deleted: map[string]bool{}, next: 3}
	if !m.undirected { // weights and times of parallel edges are merged otherwise
		m.weighted, m.timed = r.IntN(2) == 0, r.IntN(2) == 0
	}
	return m
}

// newNotedModel draws a store of one type whose edges have columns.
func newNotedModel(r *rand.Rand) *model {
	m := newModel(r)
	m.noted = true
	return m
}

// isAnew reports whether each commit writes the store anew: nodes that are deleted go, and their
// ids may come again.
func (m *model) isAnew() bool { return m.divided != nil || m.noted }

func (m *model) id(i int) string {
	if m.dense {
		return strconv.Itoa(i)
	}
	return fmt.Sprintf("n%d", i*7)
}

// draw returns an edge of nodes that are there, or that are new.
func (m *model) draw(r *rand.Rand) modelEdge {
	end := func() string {
		if !m.dense && r.IntN(6) == 0 {
			m.next++
			return m.id(m.next - 1)
		}
		for range 20 {
			if name := m.id(r.IntN(m.next)); !m.deleted[name] {
				return name
			}
		}
		m.next++
		return m.id(m.next - 1)
	}
	e := modelEdge{src: end(), dst: end()}
	if m.typed {
		e.typ = []string{"a", "b"}[r.IntN(2)]
	}
	if m.weighted {
		e.weight = r.IntN(4)
	}
	if m.timed {
		e.time = r.IntN(3)
	}
	if m.noted {
		e.note = r.IntN(5)
	}
	return e
}

// text writes edges as CSV; of deletions, with those attributes that are named.
func (m *model) text(edges []modelEdge, typed, weighted, timed bool) string {
	b := &strings.Builder{}
	line := func(src, dst, typ, weight, time, note, tag string) {
		fields := []string{src, dst}
		for _, f := range []struct {
			has   bool
			value string
		}{{typed, typ}, {weighted, weight}, {timed, time}, {m.noted, note}, {m.noted, tag}} {
			if f.has {
				fields = append(fields, f.value)
			}
		}
		fmt.Fprintln(b, strings.Join(fields, ","))
	}
	line("src", "dst", "type", "weight", "time", "note", "tag")
	for _, e := range edges {
		note, tag := "", ""
		if e.note > 0 {
			note, tag = strconv.Itoa(e.note), fmt.Sprint("t", e.note)
		}
		line(e.src, e.dst, e.typ, fmt.Sprint(e.weight), fmt.Sprint(e.time), note, tag)
	}
	return b.String()
}

// add adds edges, in the order of their first ids; undirected ones both ways and once each.
func (m *model) add(edges []modelEdge) {
	if m.divided != nil {
		m.addDivided(edges)
		return
	}
	has, plain := map[modelEdge]bool{}, func(e modelEdge) modelEdge {
		e.note = 0
		return e
	}
	for _, e := range m.edges {
		has[plain(e)] = true
	}
	put := func(e modelEdge) {
		if !m.undirected || e.src != e.dst && !has[plain(e)] {
			m.edges = append(m.edges, e)
			has[plain(e)] = true
		}
	}
	for _, e := range edges {
		for _, name := range []string{e.src, e.dst} {
			if !slices.Contains(m.names, name) {
				m.names = append(m.names, name)
			}
		}
		put(e)
		if m.undirected {
			e.src, e.dst = e.dst, e.src
			put(e)
		}
	}
}

// remove removes edges that a file names by ends and, if it says so, type and time.
func (m *model) remove(named []modelEdge, typed, timed bool) (removed int) {
	is := func(e modelEdge) bool {
		return slices.ContainsFunc(named, func(n modelEdge) bool {
			same := n.src == e.src && n.dst == e.dst ||
				m.undirected && n.src == e.dst && n.dst == e.src
			return same && (!typed || n.typ == e.typ) && (!timed || n.time == e.time)
		})
	}
	if m.divided != nil {
		return m.removeDivided(is)
	}
	was := len(m.edges)
	m.edges = slices.DeleteFunc(m.edges, is)
	return was - len(m.edges)
}

// trial is a history under way.
type trial struct {
	*testing.T
	fs  vfs.FS
	r   *rand.Rand
	m   *model
	log []string
}

func (t *trial) write(name, text string) {
	t.Helper()
	f, err := t.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// options says how a file of edges is read.
func (t *trial) options(typed, weighted, timed bool) ingest.Options {
	opt := ingest.Options{}
	opt.Edges, opt.Memory = "e.csv", 1<<30
	if typed {
		opt.RelCol = "type"
	}
	if weighted {
		opt.WeightCol = "weight"
	}
	if timed {
		opt.TimeCol = "time"
	}
	return opt
}

func (t *trial) edges(n int) (edges []modelEdge) {
	for range n {
		edges = append(edges, t.m.draw(t.r))
	}
	return edges
}

func (t *trial) ingest() {
	m := t.m
	edges := []modelEdge{{m.id(0), m.id(1), "a", 1, 1, 0}, {m.id(1), m.id(2), "b", 1, 1, 0}}
	if m.divided != nil { // each split gets some
		for i := 2; i < m.next; i++ {
			edges = append(edges, modelEdge{src: m.id(i - 1), dst: m.id(i), typ: edges[0].typ})
		}
		edges = append(edges, t.edges(20)...)
	}
	edges = append(edges, t.edges(t.r.IntN(30))...)
	for i := range edges {
		if !m.typed {
			edges[i].typ = ""
		}
	}
	if !m.typed {
		edges[0].typ, edges[1].typ = "", ""
	}
	if !m.weighted {
		edges[0].weight, edges[1].weight = 0, 0
	}
	if !m.timed {
		edges[0].time, edges[1].time = 0, 0
	}
	if m.noted {
		edges[0].note, edges[1].note = 3, 1
	}
	t.write("e.csv", m.text(edges, m.typed, m.weighted, m.timed))
	opt := t.options(m.typed, m.weighted, m.timed)
	opt.Out, opt.Undirected, opt.Both, opt.KeepSelfLoops = "s", m.undirected, m.both, !m.undirected
	if d := m.divided; d != nil {
		opt.EdgeSplit, opt.Seed, opt.KeepDuplicates, opt.Dedup = d.how, d.seed, d.keep, d.dedup
		if m.undirected {
			d.loops = d.loops || t.r.IntN(3) == 0
			opt.KeepSelfLoops = d.loops
		}
	}
	if _, err := ingest.Run(t.Context(), t.fs, opt); err != nil {
		t.Fatal(err)
	}
	m.add(edges)
}

// step does something to the store and to the model.
func (t *trial) step() {
	t.Helper()
	switch k := t.r.IntN(10); {
	case k < 4:
		t.append()
	case k < 6:
		t.deleteEdges()
	case k < 7:
		t.deleteNodes()
	case k < 8:
		t.log = append(t.log, "flush")
		w, err := begin(t.Context(), t.fs, "s")
		if err == nil {
			opt := t.options(false, false, false)
			err = w.flush(t.Context(), &opt)
			if err == nil {
				err = w.merge(t.Context(), &opt)
			}
		}
		if err == nil {
			err = errors.Join(w.sweep(t.Context()), w.close())
		}
		if err != nil {
			t.Fatal(t.log, err)
		}
	case k < 9:
		t.log = append(t.log, "compact")
		opt := parts.OrderOptions{Memory: []int64{160 << 20, 1 << 30}[t.r.IntN(2)]}
		made, err := Compact(t.Context(), t.fs, "s", opt)
		if err != nil {
			t.Fatal(t.log, err)
		}
		t.bytes(made)
	}
}

// bytes compares the files of the compacted store with those of an ingest of all that it has, with
// its identity and order of ids.
func (t *trial) bytes(made *kv.Meta) {
	t.Helper()
	if t.m.divided != nil {
		t.bytesDivided(made)
		return
	}
	m, edges := t.m, slices.Clone(t.m.edges)
	slices.SortStableFunc(edges, func(a, b modelEdge) int { return cmp.Compare(a.typ, b.typ) })
	if len(edges) == 0 || m.typed && (edges[0].typ != "a" || edges[len(edges)-1].typ != "b") ||
		m.noted && m.dense && made.IDs.Kind != kv.IDsDense {
		return // an ingest would number types or, since some went, nodes otherwise
	}
	t.write("e.csv", m.text(edges, m.typed, m.weighted, m.timed))
	t.write("n.csv", "id\n"+strings.Join(m.names, "\n")+"\n")
	opt := t.options(m.typed, m.weighted, m.timed)
	opt.Nodes, opt.IDCol, opt.Out, opt.UUID = "n.csv", "id", "once", made.UUID
	opt.Undirected, opt.Both, opt.KeepSelfLoops = m.undirected, m.both, !m.undirected
	opt.NoEdges = true // of most nodes, as those that were deleted
	want, err := ingest.Run(t.Context(), t.fs, opt)
	if err != nil {
		t.Fatal(t.log, err)
	}
	sameFiles(t.T, t.fs, "s", made, "once", want)
	if t.Failed() {
		t.Fatal(t.log)
	}
	if err := t.fs.RemoveAll("once"); err != nil {
		t.Fatal(err)
	}
}

func (t *trial) append() {
	t.Helper()
	m, edges := t.m, t.edges(1+t.r.IntN(8))
	t.log = append(t.log, fmt.Sprint("append ", edges))
	t.write("e.csv", m.text(edges, m.typed, m.weighted, m.timed))
	opt := t.options(m.typed, m.weighted, m.timed)
	_, err := Append(t.Context(), t.fs, "s", opt)
	if err != nil {
		t.Fatal(t.log, err)
	}
	m.add(edges)
}

func (t *trial) deleteEdges() {
	t.Helper()
	m := t.m
	edges := t.edges(1 + t.r.IntN(3))
	m.next = max(m.next, 0)
	for range t.r.IntN(4) {
		if len(m.edges) > 0 {
			edges = append(edges, m.edges[t.r.IntN(len(m.edges))])
		}
	}
	typed, timed := m.typed && t.r.IntN(2) == 0, m.timed && t.r.IntN(2) == 0
	timed = timed && m.divided == nil // edges of val and test have none
	t.log = append(t.log, fmt.Sprint("delete ", edges, typed, timed))
	t.write("e.csv", m.text(edges, typed, false, timed))
	done, err := Delete(t.Context(), t.fs, "s", Deletion{Options: t.options(typed, false, timed)})
	if err != nil {
		t.Fatal(t.log, err)
	}
	if n := m.remove(edges, typed, timed); uint64(n) != done.Edges {
		t.Errorf("%s: %d edges were deleted, want %d", t.log, done.Edges, n)
	}
}

func (t *trial) deleteNodes() {
	t.Helper()
	m, ids, lost := t.m, map[string]bool{}, uint64(0)
	for range 1 + t.r.IntN(2) {
		ids[m.id(t.r.IntN(m.next+2))] = true
	}
	t.log = append(t.log, fmt.Sprint("delete nodes ", ids))
	t.write("ids.txt", strings.Join(slices.Collect(maps.Keys(ids)), "\n")+"\n")
	done, err := Delete(t.Context(), t.fs, "s", Deletion{DeleteNodes: "ids.txt",
		Options: ingest.Options{}})
	if err != nil {
		t.Fatal(t.log, err)
	}
	for name := range ids {
		if m.deleted[name] || !slices.Contains(m.names, name) {
			lost++
			delete(ids, name)
		}
		m.deleted[name] = m.deleted[name] || ids[name]
	}
	if done.LostNodes != lost || done.Nodes != uint64(len(ids)) {
		t.Errorf("%s: %+v, want %d nodes and %d lost", t.log, done, len(ids), lost)
	}
	ends := func(e modelEdge) bool { return ids[e.src] || ids[e.dst] }
	was := len(m.edges)
	if m.edges = slices.DeleteFunc(m.edges, ends); m.isAnew() {
		if m.divided != nil {
			was = len(m.edges) + m.removeDivided(ends)
		}
		m.names = slices.DeleteFunc(m.names, func(name string) bool { return ids[name] })
		m.deleted = map[string]bool{} // their ids may come again
	}
	if uint64(was-len(m.edges)) != done.Edges {
		t.Errorf("%s: %d edges were deleted, want %d", t.log, done.Edges, was-len(m.edges))
	}
}

// check compares the store with the model.
func (t *trial) check() {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), t.fs, "s")
	if err != nil {
		t.Fatal(t.log, err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	set := openfiles.New(s, dev, nil)
	defer set.Close()
	dict, err := set.IDs(t.Context(), 0)
	if err != nil {
		t.Fatal(t.log, err)
	}
	meta := s.Meta()
	if meta.Edges != uint64(len(t.m.edges)) {
		t.Errorf("%s: %d edges, want %d", t.log, meta.Edges, len(t.m.edges))
	}
	all := make([]layout.NodeID, meta.Nodes)
	for i := range all {
		all[i] = layout.NodeID(i)
	}
	names, err := dict.External(t.Context(), all, nil)
	if err != nil {
		t.Fatal(t.log, err)
	}
	for v, name := range names {
		at, err := dict.Internal(t.Context(), name)
		switch {
		case t.m.deleted[name] && !errors.Is(err, nodeids.ErrDeleted):
			t.Errorf("%s: id %s of a deleted node leads to %d, %v", t.log, name, at, err)
		case !t.m.deleted[name] && (err != nil || int(at) != v):
			t.Errorf("%s: id %s leads to %d, want %d, %v", t.log, name, at, v, err)
		}
	}
	for _, name := range t.m.names {
		if !slices.Contains(names, name) {
			t.Errorf("%s: there is no node %s", t.log, name)
		}
	}
	t.counts(meta)
	t.degrees(set, names)
	if t.m.divided != nil {
		t.splits(s, dev, names)
	}
	for _, dir := range meta.Directions {
		for _, opt := range []topology.Options{{}, {Resident: true},
			{Resident: true, Form: topology.Packed}, {Resident: true, Form: topology.Compact}} {
			t.lists(s, dev, layout.Direction(slices.Index([]string{"in", "out"}, dir)), names, opt)
		}
	}
}

func (t *trial) counts(meta *kv.Meta) {
	loops, types := uint64(0), make([]uint64, len(meta.EdgeTypes))
	for _, e := range t.m.edges {
		if e.src == e.dst {
			loops++
		}
		if e.typ != "" {
			types[slices.Index(meta.EdgeTypes, e.typ)]++
		}
	}
	if meta.Stats.SelfLoops != loops || !slices.Equal(meta.Stats.TypeCounts, types) {
		t.Errorf("%s: %d loops and types %d, want %d and %d", t.log, meta.Stats.SelfLoops,
			meta.Stats.TypeCounts, loops, types)
	}
}

// degrees compares the counts of lists of nodes that are there by their lengths.
func (t *trial) degrees(set *openfiles.Set, names []string) {
	t.Helper()
	stats, err := set.Stats(t.Context(), topology.Options{})
	if err != nil {
		t.Fatal(t.log, err)
	}
	for _, dir := range []string{"in", "out"} {
		hist, most := stats.InHist, stats.InMax
		if dir == "out" {
			hist, most = stats.OutHist, stats.OutMax
		}
		kept := dir == "in" || t.m.both || t.m.undirected
		if !kept && len(set.Store.Levels()) > 0 {
			if len(hist) > 0 || most > 0 {
				t.Errorf("%s: %s-degrees %d up to %d of no lists", t.log, dir, hist, most)
			}
			continue
		}
		want, longest, of := make([]uint64, 33), uint64(0), map[string]uint64{}
		for _, e := range t.m.edges {
			if dir == "out" {
				of[e.src]++
			} else {
				of[e.dst]++
			}
		}
		for _, name := range names {
			if t.m.deleted[name] {
				continue
			}
			want[bits.Len64(of[name])]++
			longest = max(longest, of[name])
		}
		if bits.Len64(longest) >= len(hist) || !slices.Equal(hist, want[:len(hist)]) ||
			most != longest {
			t.Errorf("%s: %s-degrees %d up to %d, want %d up to %d", t.log, dir, hist, most, want,
				longest)
		}
	}
}

// lists compares all lists of a direction, and single entries of them.
//
//lint:parameters a store, and how its lists are read
func (t *trial) lists(s *layout.Store, dev blockdev.Device, dir layout.Direction, names []string,
	opt topology.Options) {
	t.Helper()
	opt.Weights, opt.Times = s.Meta().Weighted, s.Meta().Timestamped
	opt.Types = len(s.Meta().EdgeTypes) > 0
	opt.Budget = mem.NewBudget(0)
	top, err := topology.Open(t.Context(), s, dev, dir, opt)
	if err != nil {
		t.Fatal(t.log, err)
	}
	if st := top.Stats(); st.Bytes > opt.Budget.Used() {
		t.Errorf("%s: %+v: stats say %d bytes, %d are held", t.log, opt, st.Bytes,
			opt.Budget.Used())
	}
	defer func() {
		if err := top.Close(); err != nil || opt.Budget.Used() != 0 {
			t.Errorf("%s: %+v: %d bytes are held after the end, %v", t.log, opt,
				opt.Budget.Used(), err)
		}
	}()
	session := top.NewSession()
	defer session.Release()
	if top.Edges() != s.Meta().Edges {
		t.Errorf("%s: the lists have %d edges of %d", t.log, top.Edges(), s.Meta().Edges)
	}
	for v := range layout.NodeID(top.Nodes()) {
		l, err := session.Lists(t.Context(), []layout.NodeID{v})
		if err != nil {
			t.Fatal(t.log, err)
		}
		var got, want []modelEdge
		notes := t.notes(s, dir, v, len(l.Nbrs))
		for k, u := range l.Nbrs {
			e := modelEdge{src: names[u], dst: names[v], note: notes[k]}
			if l.Types != nil {
				e.typ = s.Meta().EdgeTypes[l.Types[k]]
			}
			if l.Weights != nil {
				e.weight = int(l.Weights[k])
			}
			if l.Times != nil {
				e.time = int(l.Times[k])
			}
			if dir == layout.Out {
				e.src, e.dst = e.dst, e.src
			}
			got = append(got, e)
		}
		for _, e := range t.m.edges {
			if dir == layout.In && e.dst == names[v] || dir == layout.Out && e.src == names[v] {
				if dir == layout.Out { // the table has rows of in-lists
					e.note = 0
				}
				want = append(want, e)
			}
		}
		nbrs := slices.Clone(l.Nbrs)
		if l.Weights != nil || l.Times != nil {
			columns(t.T, session, v, slices.Clone(l.Weights), slices.Clone(l.Times))
		}
		order := func(a, b modelEdge) int {
			return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst),
				cmp.Compare(a.typ, b.typ), a.weight-b.weight, a.time-b.time, a.note-b.note)
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) || !slices.IsSorted(nbrs) {
			t.Errorf("%s: %s %s: %v, want %v", t.log, dir, names[v], got, want)
		}
		t.entries(session, v, nbrs)
	}
	t.frontier(session, top.Nodes(), opt)
}

// notes reads the columns of the edges of an in-list; they are 0 of out-lists.
func (t *trial) notes(s *layout.Store, dir layout.Direction, v layout.NodeID, n int) []int {
	t.Helper()
	notes := make([]int, n)
	if !t.m.noted || dir == layout.Out {
		return notes
	}
	var all []edgetable.Entry
	for i := range notes {
		all = append(all, edgetable.Entry{Node: v, Place: uint32(i)})
	}
	for i, cells := range edgetabletest.Cells(t.T, s, 0, all) {
		if cells == " null null" {
			continue
		}
		if n, err := fmt.Sscanf(cells, " %d", &notes[i]); n != 1 || err != nil ||
			cells != fmt.Sprintf(" %d t%d", notes[i], notes[i]) {
			t.Errorf("%s: columns %q of an edge", t.log, cells)
		}
	}
	return notes
}

// frontier compares entries that are drawn from all lists together, with their attributes, with
// the whole lists.
func (t *trial) frontier(session topology.Session, nodes uint64, opt topology.Options) {
	t.Helper()
	all, deg, off := make([]layout.NodeID, nodes), make([]uint32, nodes), []uint32{0}
	for i, v := range t.r.Perm(len(all)) {
		all[i] = layout.NodeID(v)
	}
	of, err := session.Lists(t.Context(), all)
	if err != nil {
		t.Fatal(t.log, err)
	}
	whole := listfile.Lists{Off: slices.Clone(of.Off), Nbrs: slices.Clone(of.Nbrs),
		Types: slices.Clone(of.Types), Weights: slices.Clone(of.Weights)}
	if err := session.Degrees(t.Context(), all, deg); err != nil {
		t.Fatal(t.log, err)
	}
	var pos []uint32
	var at []uint64
	for i, d := range deg {
		if n := whole.Off[i+1] - whole.Off[i]; n != uint64(d) {
			t.Fatalf("%s: %+v: node %d has degree %d and %d entries", t.log, opt, all[i], d, n)
		}
		for range min(d, uint32(t.r.IntN(4))) {
			pos = append(pos, t.r.Uint32N(d))
			at = append(at, whole.Off[i]+uint64(pos[len(pos)-1]))
		}
		off = append(off, uint32(len(pos)))
	}
	got := make([]layout.NodeID, len(pos))
	to := topology.Attributes{Places: make([]uint32, len(pos))}
	if opt.Weights {
		to.Weights = make([]float32, len(pos))
	}
	if opt.Types {
		to.Types = make([]uint32, len(pos))
	}
	err = session.(topology.AttributeReader).GatherAttributes(t.Context(), off, pos, to)
	if err == nil {
		err = session.Gather(t.Context(), off, pos, got)
	}
	if err != nil {
		t.Fatal(t.log, err)
	}
	for i, k := range at {
		if got[i] != whole.Nbrs[k] || to.Places[i] != pos[i] ||
			opt.Weights && to.Weights[i] != whole.Weights[k] ||
			opt.Types && to.Types[i] != uint32(whole.Types[k]) {
			t.Fatalf("%s: %+v: entry %d of those drawn is not that at %d of all lists", t.log, opt,
				i, k)
		}
	}
}

// entries compares the degree of a node, and each entry of its list by itself.
func (t *trial) entries(session topology.Session, v layout.NodeID, nbrs []layout.NodeID) {
	t.Helper()
	deg, pos := []uint32{0}, make([]uint32, len(nbrs))
	for i := range pos {
		pos[i] = uint32(i)
	}
	out := make([]layout.NodeID, len(nbrs))
	err := session.Degrees(t.Context(), []layout.NodeID{v}, deg)
	if err == nil {
		err = session.Gather(t.Context(), []uint32{0, uint32(len(pos))}, pos, out)
	}
	if err != nil || int(deg[0]) != len(nbrs) || !slices.Equal(out, nbrs) {
		t.Errorf("%s: node %d: degree %d, entries %d, list %d, %v", t.log, v, deg[0], out, nbrs,
			err)
	}
}

// fewLevels has stores keep few levels during a test.
func fewLevels(t *testing.T, most int) {
	usual := levelsMost
	levelsMost = most
	t.Cleanup(func() { levelsMost = usual })
}

// allLarge has all commits be large ones during a test.
func allLarge(t *testing.T) { t.Cleanup(largeAll()) }

// largeAll has all commits be large ones until undo is called.
func largeAll() (undo func()) {
	edges, bytes := smallEdges, scratchMost
	smallEdges, scratchMost = 0, 0
	return func() { smallEdges, scratchMost = edges, bytes }
}

// number returns what a variable of the environment says, or what is usual.
func number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// TestHistories does random things to stores and to models of them in memory, and compares both
// after each. GDB_TEST_HISTORIES sets how many histories, GDB_TEST_SEED the first seed.
func TestHistories(t *testing.T) { histories(t, newModel) }

// TestNotedHistories is TestHistories of stores whose edges have columns.
func TestNotedHistories(t *testing.T) { histories(t, newNotedModel) }

// histories does random things to stores, and to models of them.
func histories(t *testing.T, draw func(r *rand.Rand) *model) {
	first := number("GDB_TEST_SEED", 1)
	for seed := first; seed < first+number("GDB_TEST_HISTORIES", 25); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 2))
			fewLevels(t, seed%3+1)
			if seed%2 == 0 {
				allLarge(t)
			}
			h := &trial{T: t, fs: vfs.NewMem(), r: r, m: draw(r)}
			h.ingest()
			h.check()
			for range 1 + r.IntN(8) {
				h.step()
				h.check()
				if t.Failed() {
					t.Fatal("after the last step")
				}
			}
			sound(t, h.fs, "s")
		})
	}
}
