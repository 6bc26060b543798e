package inspect

import (
	"errors"
	"fmt"
	"math/bits"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/errors/oserror"
)

// topologyHeader checks the header of a topology file or index against the catalog.
func (c *checker) topologyHeader(f *layout.File, dir layout.Direction,
	kind string) (blocks bool, err error) {
	fields, blocks, err := c.header(f, kind)
	if err != nil || fields == nil {
		return blocks, err
	}
	got, err := listfile.DecodeFields(fields)
	switch want := listfile.FieldsOf(c.s.Meta(), dir); {
	case err != nil:
		c.find(0, 0, "header: %v", err)
	case !got.Agrees(want):
		c.find(0, 0, "header tells of %d lists of %d nodes in blocks of %d bytes, the catalog of "+
			"%d of %d in %d", got.Lists, got.Nodes, got.BlockBytes, want.Lists, want.Nodes,
			want.BlockBytes)
	}
	return true, nil
}

// lists checks a topology file.
func (c *checker) lists(f *layout.File, dir layout.Direction) error {
	blocks, err := c.topologyHeader(f, dir, layout.TopologyKind(dir))
	if err != nil || !blocks {
		return err
	}
	l, err := listfile.Described(f, dir, c.s.Meta())
	if err != nil {
		c.find(-1, -1, "the catalog says: %v", err)
		return nil
	}
	m := &listMeaning{c: c, dir: dir, shape: &l.Shape, numbers: l.Numbers}
	if c.opt.Full {
		err = m.begin()
	}
	if err == nil {
		err = c.listBlocks(l, m)
	}
	if err == nil && c.opt.Full {
		m.end()
	}
	for _, s := range m.starts {
		if err == nil && !m.damaged {
			err = s.upTo(s.t.Starts.Rows)
		}
		err = errors.Join(err, s.close())
	}
	if m.index != nil {
		err = errors.Join(err, m.index.close())
	}
	return err
}

func (c *checker) listBlocks(l *listfile.File, m *listMeaning) error {
	var order listfile.Order
	return c.blocks(l.File, l.Size(), l.BlockBytes, func(n, off int64, b []byte) error {
		k, _, cont, err := l.Next(n, b, &order)
		switch {
		case err != nil:
		case c.opt.Full:
			err = m.block(n, &k, cont)
		default:
			err = l.Shape.DecodeIDs(&k, &m.lists)
		}
		if err != nil {
			c.find(n, off, "%v", err)
			order = listfile.Order{Lost: true}
			m.damaged = true
		}
		return nil
	})
}

// listMeaning checks block by block what the lists of a direction mean.
type listMeaning struct {
	c       *checker
	dir     layout.Direction
	shape   *listfile.Shape
	damaged bool                 // the counts are not complete
	index   *indexWindow         // nil if the index is damaged, which its own check reports
	starts  map[int]*startsCheck // of tables of edges, by relation
	lists   listfile.Lists

	numbers      *layout.NodeLists // nil if a node has one list
	edges, loops uint64
	blocks       int64
	node         layout.NodeID // of the last list
	open         bool          // there is one
	sofar        uint64        // the degree of that node so far
	last         layout.NodeID // the last neighbor of that list so far
	hist         histogram
	types        []uint64
	part         int
	parts        []uint64 // edges of each partition
}

func (m *listMeaning) begin() error {
	s := m.c.s
	m.types = make([]uint64, len(s.Meta().EdgeTypes))
	m.parts = make([]uint64, len(s.Meta().Partitions))
	if m.dir == layout.In {
		var err error
		if m.starts, err = m.c.openStarts(); err != nil {
			return err
		}
	}
	index, err := openIndexWindow(m.c.ctx, s, m.c.dev, m.dir)
	if err == nil {
		m.index = index
		return nil
	}
	// The check of the index file reports what is wrong with the index.
	var bad *layout.CorruptionError
	if errors.As(err, &bad) || oserror.IsNotExist(err) || errors.Is(err, kv.ErrFormat) {
		return nil
	}
	return err
}

// compareIndex checks that a block begins where the index says.
func (m *listMeaning) compareIndex(n int64, k *listfile.Block) error {
	if m.index == nil || n > m.index.blocks {
		return nil
	}
	want, start, ok, err := m.index.beginOf(m.c.ctx, n)
	if err != nil {
		err = errors.Join(m.c.note(err), m.index.close())
		m.index = nil
		return err
	}
	if k.Raw() {
		start = k.Start // the position follows from the size of blocks
	}
	if ok && (want != k.First || start != k.Start) {
		m.c.find(n, listfile.BlockOffset(n, m.shape.BlockBytes),
			"block begins with node %d at %d, the index says %d at %d", k.First, k.Start,
			want, start)
	}
	return nil
}

// block checks a block whose checksum was verified.
func (m *listMeaning) block(n int64, k *listfile.Block, cont bool) error {
	if err := m.shape.Decode(k, &m.lists); err != nil {
		return err
	}
	m.blocks = n
	if err := m.compareIndex(n, k); err != nil {
		return err
	}
	l := &m.lists
	for i := range k.Slots {
		node, from, to := k.First+layout.NodeID(i), l.Off[i], l.Off[i+1]
		relation := -1
		if m.numbers != nil {
			var r uint16
			node, r = m.numbers.Node(node)
			relation = int(r)
		}
		if !cont || i > 0 {
			m.last = 0
		}
		if !m.open || node != m.node {
			m.closeNode()
			m.open, m.node = true, node
		}
		if err := m.list(node, relation, l.Nbrs[from:to]); err != nil {
			return err
		}
		if s := m.starts[max(relation, 0)]; s != nil && !m.damaged {
			if err := s.list(node, !cont || i > 0, to-from); err != nil {
				return err
			}
		}
		m.countPartition(node, to-from)
		m.sofar += to - from
	}
	m.edges += uint64(k.Entries)
	return m.countTypes(l.Types)
}

// list checks the order and the range of a list, or of a part of it: of a relation, or of all edges
// if that is -1.
func (m *listMeaning) list(node layout.NodeID, relation int, nbrs []layout.NodeID) error {
	prev := m.last
	for _, v := range nbrs {
		if v < prev {
			return fmt.Errorf("list of node %d is not sorted: %d after %d", node, v, prev)
		}
		if v == node {
			m.loops++
		}
		prev = v
	}
	if uint64(prev) >= m.c.s.Meta().Nodes {
		return fmt.Errorf("node %d has neighbor %d of %d nodes", node, prev, m.c.s.Meta().Nodes)
	}
	m.last = prev
	if relation < 0 || len(nbrs) == 0 {
		return nil
	}
	m.types[relation] += uint64(len(nbrs))
	meta := m.c.s.Meta()
	other := meta.Relations[relation].Src
	if m.dir == layout.Out {
		other = meta.Relations[relation].Dst
	}
	if meta.TypeOf(nbrs[0]) != other || meta.TypeOf(prev) != other {
		return fmt.Errorf("node %d has neighbors %d to %d by relation %q, which are of other types",
			node, nbrs[0], prev, meta.EdgeTypes[relation])
	}
	return nil
}

func (m *listMeaning) countTypes(types []uint16) error {
	for _, t := range types {
		if int(t) >= len(m.types) {
			return fmt.Errorf("edge has type %d of %d", t, len(m.types))
		}
		m.types[t]++
	}
	return nil
}

func (m *listMeaning) countPartition(node layout.NodeID, edges uint64) {
	parts := m.c.s.Meta().Partitions
	for m.part < len(parts) && uint64(node) >= uint64(parts[m.part].First)+parts[m.part].Nodes {
		m.part++
	}
	if m.part < len(parts) {
		m.parts[m.part] += edges
	}
}

// closeNode counts a node whose lists have ended. Those without neighbors are counted in the end.
func (m *listMeaning) closeNode() {
	if m.sofar > 0 {
		m.hist.counts[bits.Len64(m.sofar)]++
		m.hist.counts[0]--
		m.hist.most = max(m.hist.most, m.sofar)
	}
	m.open, m.sofar = false, 0
}

// end compares the counts with the catalog. It does not if blocks were damaged, because the counts
// cannot be right then.
func (m *listMeaning) end() {
	meta := m.c.s.Meta()
	if m.damaged || m.c.found > 0 {
		return
	}
	m.closeNode()
	m.hist.counts[0] += meta.Nodes
	if m.edges != meta.Edges {
		m.c.find(-1, -1, "file has %d edges, the catalog %d", m.edges, meta.Edges)
	}
	if m.index != nil && (m.index.edges != m.edges || m.index.blocks != m.blocks) {
		m.c.find(-1, -1, "file has %d edges in %d blocks, its index tells of %d in %d", m.edges,
			m.blocks, m.index.edges, m.index.blocks)
	}
	m.compareCounts(&meta.Stats)
	hist, most := meta.Stats.InHist, meta.Stats.InMax
	if m.dir == layout.Out {
		hist, most = meta.Stats.OutHist, meta.Stats.OutMax
	}
	if what := m.hist.differs(hist, most); what != "" {
		m.c.find(-1, -1, "%s", what)
	}
	for p, n := range m.parts {
		if m.dir == layout.In && n != meta.Partitions[p].Edges {
			m.c.find(-1, -1, "partition %d has %d edges, the catalog says %d", p, n,
				meta.Partitions[p].Edges)
		}
	}
}

// compareCounts compares the counts of types and self loops, unless the catalog counts more files.
func (m *listMeaning) compareCounts(stats *kv.GraphStats) {
	if m.c.apart {
		return
	}
	for t, n := range m.types {
		if t >= len(stats.TypeCounts) || n != stats.TypeCounts[t] {
			m.c.find(-1, -1, "%d edges of type %q, the catalog has another count", n,
				m.c.s.Meta().EdgeTypes[t])
		}
	}
	if m.loops != stats.SelfLoops {
		m.c.find(-1, -1, "%d self loops, the catalog has %d", m.loops, stats.SelfLoops)
	}
}

// index checks an index: its pages, and if they are intact, their contents.
func (c *checker) index(f *layout.File, dir layout.Direction) error {
	kind := layout.IndexKind(dir)
	blocks, err := c.topologyHeader(f, dir, kind)
	if err != nil || !blocks {
		return err
	}
	if err := c.pages(f, kind); err != nil || c.found > 0 {
		return err
	}
	ix, err := listfile.LoadIndex(c.ctx, c.s, c.dev, dir, nil)
	if err != nil {
		return err
	}
	if ix.Edges != c.s.Meta().Edges {
		c.find(-1, -1, "index tells of %d edges, the catalog of %d", ix.Edges, c.s.Meta().Edges)
	}
	return ix.Free()
}

// pages checks the checksums of pages of 4 KiB after the header.
func (c *checker) pages(f *layout.File, kind string) error {
	return c.blocks(f, f.Size(), layout.PageBytes, func(n, off int64, b []byte) error {
		if err := layout.VerifyPage(kind, c.s.Meta().UUID, n, b); err != nil {
			c.find(n, off, "%v", err)
		}
		return nil
	})
}
