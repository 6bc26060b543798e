package layouttest

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/rowfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// labels writes the labels of the graph, of whichever kind they are.
func (b *builder) labels() {
	switch {
	case b.g.Labels != nil:
		b.classes()
	case b.g.Multi != nil:
		b.multi()
	case b.g.Targets != nil:
		b.targets()
	}
}

func (b *builder) classes() {
	g := b.g
	l := &kv.LabelsMeta{Kind: "class", Classes: g.Classes,
		ClassCounts: make([]uint64, len(g.Classes))}
	l.Rows = b.rows("labels", "labels", rowfile.I32, 1, func(w *rowfile.Writer, v int) error {
		if c := g.Labels[v]; c >= 0 {
			l.ClassCounts[c]++
			l.Labeled++
		}
		return w.Add(binary.LittleEndian.AppendUint32(nil, uint32(g.Labels[v])))
	})
	b.m.Labels = l
}

func (b *builder) multi() {
	g := b.g
	l := &kv.LabelsMeta{Kind: "multi", Classes: g.Classes,
		ClassCounts: make([]uint64, len(g.Classes))}
	width := (len(g.Classes) + 7) / 8
	bytes := width
	if g.Unknown != nil {
		bytes = 2 * width
	}
	l.Rows = b.rows("labels", "labels", rowfile.U8, bytes, func(w *rowfile.Writer,
		v int) error {
		row := make([]byte, bytes)
		if g.Unknown != nil && g.Multi[v] != nil {
			for c := range g.Classes {
				row[width+c/8] |= 1 << (c % 8)
			}
			for _, c := range g.Unknown[v] {
				row[width+c/8] &^= 1 << (c % 8)
				l.Unknown++
			}
		}
		for _, c := range g.Multi[v] {
			row[c/8] |= 1 << (c % 8)
			l.ClassCounts[c]++
		}
		if g.Multi[v] != nil {
			l.Labeled++
		}
		return w.Add(row)
	})
	b.m.Labels = l
}

func (b *builder) targets() {
	l := &kv.LabelsMeta{Kind: "target"}
	l.Rows = b.rows("labels", "labels", rowfile.F32, 1, func(w *rowfile.Writer, v int) error {
		if x := float64(b.g.Targets[v]); !math.IsNaN(x) {
			l.Labeled++
		}
		return w.AddF32(b.g.Targets[v : v+1])
	})
	b.m.Labels = l
}

// ids writes the dictionary of external ids.
func (b *builder) ids() {
	b.m.IDs = kv.IDsMeta{Kind: kv.IDsString, HashSeed: 77}
	fw, err := ids.NewForwardWriter(b.fs, b.fs.PathJoin(b.dir, "ids", "forward.ids"), b.g.UUID, 77)
	b.must(err)
	rw, err := ids.NewReverseWriter(b.fs, b.fs.PathJoin(b.dir, "ids", "reverse.ids"), b.g.UUID)
	b.must(err)
	type entry struct {
		hash uint64
		id   string
		node kv.NodeID
	}
	var entries []entry
	for v, id := range b.g.IDs {
		b.must(rw.Add([]byte(id)))
		entries = append(entries, entry{ids.Hash(77, []byte(id)), id, kv.NodeID(v)})
	}
	slices.SortFunc(entries, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.hash, y.hash), cmp.Compare(x.id, y.id))
	})
	for _, e := range entries {
		b.must(fw.Add(e.hash, []byte(e.id), e.node))
	}
	forward, err := fw.Finish()
	b.must(err)
	reverse, err := rw.Finish()
	b.must(err)
	b.m.Files = append(b.m.Files, forward, reverse)
}

// sets returns the stored sets: the splits, and the nodes that have multi-labels.
func (b *builder) sets() map[string]*roaring.Bitmap {
	sets := map[string]*roaring.Bitmap{}
	for name, nodes := range b.g.Splits {
		sets[name] = roaring.New()
		for _, v := range nodes {
			sets[name].Add(uint32(v))
		}
	}
	if b.g.Multi != nil {
		sets["labeled"] = roaring.New()
		for v, classes := range b.g.Multi {
			if classes != nil {
				sets["labeled"].Add(uint32(v))
			}
		}
	}
	return sets
}

// create makes the store exist, and opens it.
func (b *builder) create() *layout.Store {
	if b.g.NoCatalog {
		return layout.NewStore(b.fs, b.dir, b.m)
	}
	ctx := context.Background()
	catalog := catalog.New(b.fs, b.fs.PathJoin(b.dir, "catalog"))
	b.must(catalog.Create(ctx, b.m, b.sets()))
	s, err := layout.Open(ctx, b.fs, b.dir)
	b.must(err)
	return s
}
