package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/tables"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// nodePair are two nodes as "type:id", in order.
type nodePair [2]string

func pairBetween(a, b string) nodePair { return nodePair{min(a, b), max(a, b)} }

// pairs calls fn with the ends of all edges of a model, keys included.
func (m *typedModel) pairs(fn func(src, dst string)) {
	for rel, rows := range m.edges {
		for _, row := range rows {
			fn(rel.Src+":"+row[0], rel.Dst+":"+row[1])
		}
	}
	for _, row := range m.nodes["order"] {
		for i, typ := range []string{"user", "item"} {
			if row[1+i] != "" {
				fn("order:"+row[0], typ+":"+row[1+i])
			}
		}
	}
}

// divide returns the split of each pair of nodes that an edge joins: as it was before, or drawn by
// the numbers that the nodes have now.
func (m *typedModel) divide(t *testing.T, before map[nodePair]string) map[nodePair]string {
	t.Helper()
	shares, err := splits.ParseEdgeShares(m.opt.EdgeSplit)
	if err != nil {
		t.Fatal(err)
	}
	draw, number := splits.NewEdgeDraw(shares, m.opt.Seed), map[string]uint32{}
	for _, typ := range modelTypes {
		for _, row := range m.nodes[typ] {
			number[typ+":"+row[0]] = uint32(len(number))
		}
	}
	of := map[nodePair]string{}
	m.pairs(func(src, dst string) {
		p := pairBetween(src, dst)
		if of[p] = before[p]; of[p] == "" {
			of[p] = draw.Of(number[src], number[dst])
		}
	})
	return of
}

// splitSource is a source of tables whose edges are in given splits.
type splitSource struct {
	typedTables
	m    *typedModel
	info source.Info
	of   map[nodePair]string
}

// typedTables is what an ingest asks of tables of several types.
type typedTables interface {
	source.Source
	keys.Source
	tables.Source
	PlaceTypes(first []uint64)
	ForceTargets()
}

func (s *splitSource) Info() *source.Info { return &s.info }

// Edges streams the edges one by one, with their splits.
func (s *splitSource) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	return s.typedTables.Edges(ctx, func(c *source.EdgeChunk) error {
		r := s.info.Relations[c.TypeInt[0]]
		for i := range c.Len() {
			src, dst := s.end(r.Src, c.SrcInt, c.SrcText, i), s.end(r.Dst, c.DstInt, c.DstText, i)
			one := *c
			one.Split = s.of[pairBetween(src, dst)]
			if c.SrcText != nil {
				one.SrcText = c.SrcText[i : i+1]
			} else {
				one.SrcInt = c.SrcInt[i : i+1]
			}
			if c.DstText != nil {
				one.DstText = c.DstText[i : i+1]
			} else {
				one.DstInt = c.DstInt[i : i+1]
			}
			one.TypeInt = c.TypeInt[i : i+1]
			if c.Time != nil {
				one.Time = c.Time[i : i+1]
			}
			one.Columns = nil
			for k := range c.Columns {
				one.Columns = slices.Grow(one.Columns, 1)[:k+1]
				one.Columns[k].Append(&c.Columns[k], i, i+1)
			}
			if err := fn(&one); err != nil {
				return err
			}
		}
		return nil
	})
}

// end returns an end of edge i as "type:id".
func (s *splitSource) end(typ int, rows []uint64, text [][]byte, i int) string {
	if text != nil {
		return string(text[i])
	}
	name := s.info.NodeTypes[typ]
	return name + ":" + s.m.nodes[name][rows[i]][0]
}

// onceSplit ingests the whole model, with splits of the edges that are given.
func (m *typedModel) onceSplit(t *testing.T, fs vfs.FS, out string, id kv.UUID,
	of map[nodePair]string) *kv.Meta {
	t.Helper()
	opt := m.whole(t, fs)
	opt.Out, opt.UUID, opt.EdgeSplit, opt.Seed = out, id, "", 0
	src, err := source.Open(t.Context(), fs, &opt.Options)
	if err != nil {
		t.Fatal(err)
	}
	divided := &splitSource{typedTables: src.(typedTables), m: m, info: *src.Info(), of: of}
	divided.info.EdgeSplits = []string{"train", "val", "test"}
	made, err := ingest.RunSource(t.Context(), fs, divided, opt)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestTypedSplits: a typed store whose edges are in splits, and whose nodes and edges came, changed
// and went by commits, has the same bytes as one that all tables are ingested to at once with the
// splits that edges between two nodes had before, and that are drawn for new pairs.
func TestTypedSplits(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 31))
			m, fs := newTypedModel(r), vfs.NewMem()
			m.opt.EdgeSplit, m.opt.Seed = "random=50/25/25", seed
			m.once(t, fs, "live", kv.UUID{})
			m.know()
			of := m.divide(t, nil)
			for i := range 4 + r.IntN(4) {
				switch i {
				case 1:
					m.change(t, fs)
				case 2:
					m.delete(t, fs)
				default:
					m.step(t, fs)
				}
				of = m.divide(t, of)
			}
			s, err := layout.OpenLive(t.Context(), fs, "live")
			if err != nil {
				t.Fatal(err)
			}
			want := m.onceSplit(t, fs, "once", s.Meta().UUID, of)
			sameFiles(t, fs, "live", s.Meta(), "once", want)
			m.sameMeta(t, s.Meta(), want)
			if got := s.Meta().Source.Args; !slices.Contains(got, "--edge-split=random=50/25/25") {
				t.Errorf("the source has forgotten how edges are split: %q", got)
			}
			sound(t, fs, "live")
		})
	}
}

// TestTypedSplitsAtOnce: where no node is numbered anew, edges that come get the splits that
// an ingest of all at once gives them.
func TestTypedSplitsAtOnce(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m, fs := newTypedModel(rand.New(rand.NewPCG(seed, 32))), vfs.NewMem()
			m.opt.EdgeSplit, m.opt.Seed = "random=60/20/20", seed
			if seed%2 == 1 {
				m.opt.EdgeSplit = "time=2026-01-08,2026-01-15"
			}
			m.once(t, fs, "live", kv.UUID{})
			for range 3 {
				more := map[source.Relation][][]string{}
				for rel := range modelEdges {
					more[rel] = m.newEdges(rel, 3+m.r.IntN(5))
					m.edges[rel] = append(m.edges[rel], more[rel]...)
				}
				m.append(t, fs, nil, more)
			}
			s, err := layout.OpenLive(t.Context(), fs, "live")
			if err != nil {
				t.Fatal(err)
			}
			want := m.once(t, fs, "once", s.Meta().UUID)
			sameFiles(t, fs, "live", s.Meta(), "once", want)
			m.sameMeta(t, s.Meta(), want)
		})
	}
}

// TestTypedSplitsRefused: what splits of edges cannot say is refused, and nothing changes.
func TestTypedSplitsRefused(t *testing.T) {
	m, fs := newTypedModel(rand.New(rand.NewPCG(1, 33))), vfs.NewMem()
	m.opt.EdgeSplit, m.opt.Seed = "random=60/20/20", 1
	m.once(t, fs, "live", kv.UUID{})
	of := m.divide(t, nil)
	del := Deletion{}
	del.Memory = 1 << 30
	writeText(t, fs, "gone.csv", "user,sku,since\n1,s9,2026-01-02")
	del.Relations = []source.Relation{{Src: "user", Name: "likes", Dst: "item", File: "gone.csv"}}
	_, err := Delete(t.Context(), fs, "live", del)
	if err == nil || !strings.Contains(err.Error(), "without times") {
		t.Errorf("edges named by times: %v", err)
	}
	more := ingest.Options{}
	more.Memory = 1 << 30
	writeText(t, fs, "more.csv", "src,dst")
	more.Relations = []source.Relation{{Src: "user", Name: "follows", Dst: "user",
		File: "more.csv"}}
	if done, err := Append(t.Context(), fs, "live", more); err != nil || done.Snapshot != 0 {
		t.Errorf("a file without edges: %+v, %v", done, err)
	}
	made := m.onceSplit(t, fs, "drawn", kv.UUID{9}, of)
	writeText(t, fs, "more.csv", "src,dst\n"+m.nodes["user"][0][0]+","+m.nodes["user"][1][0])
	if _, err := Append(t.Context(), fs, "drawn", more); err == nil ||
		!strings.Contains(err.Error(), "not drawn by chance") {
		t.Errorf("splits of a source, %v: %v", made.EdgeSplits, err)
	}
}
