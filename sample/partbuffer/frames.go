package partbuffer

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/partition"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// frames has the partitions of a set in frames, in which those that stay for the next set are left.
type frames struct {
	topology.Held
	rows
	cfg   *Config
	parts *partition.Buffer
	arenas
	at    []uint32 // slot of each node, from 1 on; 0 if it is not in memory
	lists entries  // by slot
}

// frameArrays returns the sizes of the memory of frames, in bytes: by node of the graph, and by
// node in memory its features, and where its list begins and ends; then each block of entries.
func frameArrays(c *Config, dim int) []int64 {
	n := c.setNodes()
	all := []int64{4 * int64(c.Deal.Nodes()), 4 * n * int64(dim), 8 * n, 4 * n}
	share := float64(c.Deal.Most(c.capacity())) / float64(c.Deal.Nodes())
	for range int(share*share*float64(c.Edges)*9/8)/topology.BlockEntries + 1 {
		all = append(all, 4*topology.BlockEntries)
	}
	return all
}

func newFrames(c *Config) (f *frames, err error) {
	f = &frames{cfg: c, arenas: arenas{budget: c.Budget}}
	f.rows = rows{from: c.Rows, threads: c.Threads,
		slot: func(v sample.NodeID) uint32 { return f.at[v] }}
	f.parts = partition.NewBuffer(f, c.Deal.Parts(), c.capacity())
	f.Held = topology.Held{NodeCount: c.Deal.Nodes(), Place: f.place}
	f.lists.more = func() ([]byte, error) { return f.take("edges", 4*topology.BlockEntries) }
	if c.Rows != nil {
		f.dim = c.Rows.Meta().Dim
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	sizes := frameArrays(c, f.dim)
	for i, array := range []struct {
		what string
		to   func(all []byte)
	}{
		{"places of nodes", func(a []byte) { f.at = mem.View[uint32](a) }},
		{"features", func(a []byte) { f.all = mem.View[float32](a) }},
		{"places of lists", func(a []byte) { f.lists.start = mem.View[uint64](a) }},
		{"lengths of lists", func(a []byte) { f.lists.degree = mem.View[uint32](a) }},
	} {
		all, err := f.take(array.what, sizes[i])
		if err != nil {
			return f, err
		}
		array.to(all)
	}
	err = f.lists.grow(uint64(len(sizes)-4) * topology.BlockEntries)
	f.lists.show(&f.Held)
	return f, err
}

// Close frees the memory.
func (f *frames) Close() error { return errors.Join(f.parts.Drop(), f.free()) }

// Has says whether a node is in memory.
func (f *frames) Has(v sample.NodeID) bool { return f.at[v] != 0 }

// Inner returns nil: lists have no other neighbors.
func (f *frames) Inner() topology.Reader { return nil }

// Fill reads the features of a partition: see partition.Disk.
func (f *frames) Fill(ctx context.Context, part, frame int) (bytes int64, err error) {
	return f.read(ctx, f.firstSlot(frame), func(take func(v sample.NodeID)) {
		f.cfg.Deal.EachNode(f.flags(roaring.BitmapOf(uint32(part))),
			func(_ int, v sample.NodeID) { take(v) })
	})
}

// Store does nothing, since features do not change: see partition.Disk.
func (f *frames) Store(int, int) (int64, error) { return 0, nil }

// firstSlot returns the first slot of a frame.
func (f *frames) firstSlot(frame int) uint32 { return 1 + uint32(frame)*uint32(f.cfg.Deal.Most(1)) }

// flags returns which partitions are in a set.
func (f *frames) flags(set *roaring.Bitmap) []bool {
	in := make([]bool, f.cfg.Deal.Parts())
	for it := set.Iterator(); it.HasNext(); {
		in[it.Next()] = true
	}
	return in
}

// load is described at memory. Features of partitions that stay are not read again; lists are,
// since they are those between the nodes in memory.
func (f *frames) load(ctx context.Context, lists topology.Reader, now,
	next *roaring.Bitmap) error {
	before := f.parts.Resident().Clone()
	err := f.parts.Advance(ctx, now, next)
	if err == nil {
		f.cfg.Deal.EachNode(f.flags(roaring.AndNot(before, now)),
			func(_ int, v sample.NodeID) { f.at[v] = 0 })
		f.enter(roaring.AndNot(now, before))
		err = f.readLists(ctx, lists, f.flags(now))
	}
	if err != nil { // what is in memory is incomplete
		clear(f.at)
		_ = f.parts.Drop() // Advance returns its error
	}
	return err
}

// enter gives the nodes of partitions that came the slots of their frames.
func (f *frames) enter(fresh *roaring.Bitmap) {
	slots := make([]uint32, f.cfg.Deal.Parts())
	for it := fresh.Iterator(); it.HasNext(); {
		part := it.Next()
		slots[part] = f.firstSlot(f.parts.Frame(int(part)))
	}
	f.cfg.Deal.EachNode(f.flags(fresh), func(part int, v sample.NodeID) {
		f.at[v] = slots[part]
		slots[part]++
	})
}

// place returns where the list of a node begins, and its length. To ask for a node that is not in
// memory is an error.
func (f *frames) place(v sample.NodeID) (first uint64, degree uint32, err error) {
	if uint64(v) >= f.NodeCount || f.at[v] == 0 {
		return 0, 0, notThere(v)
	}
	at := f.at[v] - 1
	return f.lists.start[at], f.lists.degree[at], nil
}

// listsOnce is what is read together of lists.
var listsOnce = topology.ListsMost{Nodes: 1 << 10, Entries: 1 << 18}

// readLists reads the lists of the nodes in memory, and keeps the neighbors that are in memory.
func (f *frames) readLists(ctx context.Context, lists topology.Reader, in []bool) (err error) {
	session := lists.NewSession()
	defer session.Release()
	f.lists.count = 0
	nodes := make([]sample.NodeID, 0, listsOnce.Nodes)
	read := func() {
		if err == nil {
			last := layout.NodeID(f.NodeCount) // the list that goes on
			err = topology.EachList(ctx, session, nodes, listsOnce,
				func(of []sample.NodeID, l *listfile.Lists) (bool, error) {
					err := f.takeLists(of, &last, l)
					return true, err
				})
		}
		nodes = nodes[:0]
	}
	f.cfg.Deal.EachNode(in, func(_ int, v sample.NodeID) {
		if nodes = append(nodes, v); len(nodes) == cap(nodes) {
			read()
		}
	})
	if read(); err != nil {
		return fmt.Errorf("sample: read the neighbor lists of partitions: %w", err)
	}
	f.lists.show(&f.Held)
	return nil
}

// takeLists keeps the lists of nodes, or a further part of the list of last.
func (f *frames) takeLists(nodes []sample.NodeID, last *sample.NodeID, l *listfile.Lists) error {
	for i, v := range nodes {
		at := f.at[v] - 1
		if v != *last {
			f.lists.begin(at)
		}
		*last = v
		if err := checkNodes(l.Nbrs[l.Off[i]:l.Off[i+1]], f.NodeCount); err != nil {
			return err
		}
		err := f.lists.keep(at, l.Nbrs[l.Off[i]:l.Off[i+1]],
			func(u sample.NodeID) bool { return f.at[u] != 0 })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkNodes returns an error unless all neighbors are nodes of the graph.
func checkNodes(all []sample.NodeID, nodes uint64) error {
	for _, u := range all {
		if uint64(u) >= nodes {
			return layout.OutOfRange(u, nodes)
		}
	}
	return nil
}
