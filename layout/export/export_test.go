package export_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/export"
	"gdb/layout/ingest"
	"gdb/layout/ingest/schema"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tables are the files that the stores of the tests are made of.
var tables = map[string]string{
	"user.csv": "id,age,zip,part,kind\nu1,30,01234,train,a\nu2,,00017,val,b\nu3,20,,test,a\n",
	"item.csv": "id,price,made,big\n9,1.25,2024-01-31,true\n4,,,false\n7,3,2023-12-01,\n",
	"buys.csv": "user,item,weight,when,stars\nu1,9,2,2024-03-01T10:00:00,5\n" +
		"u3,9,1,2024-03-02T11:30:00,\nu1,4,.5,2024-03-03T00:00:00,1\n",
	"has.csv": "item,tag\n9,red\n4,017\n9,blue\n",
	"nodes.csv": "id,label,split,a,b\n3,x,train,.5,1\n17,y,val,-2,0\n5,,test,3,1\n8,x,train,0,0\n" +
		"1,y,,1e-9,1\n",
	"edges.csv": "src,dst,weight,time,note\n3,17,.5,2024-01-02,007\n17,3,1,2024-01-01,\n" +
		"5,8,2,2024-05-05,\"a,b\"\n3,17,1,2023-01-01,z\n1,1,1,2024-01-03,z\n",
	"words.csv": "name,y\nbee,1.5\nant,\ncat,-2.25\n",
	"links.csv": "from,to\nant,bee\ncat,ant\nbee,cat\n",
	"dense.csv": "a,b\n0,1\n1,2\n2,0\n0,2\n",
}

// made are options of stores whose export makes equal ones.
var made = map[string]ingest.Options{
	"typed": {Options: source.Options{NodeTables: []source.NodeTable{{Type: "user",
		File: "user.csv"}, {Type: "item", File: "item.csv"}},
		Relations: []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "buys.csv"},
			{Src: "item", Name: "has", Dst: "tag", File: "has.csv"}},
		TimeCol: "buys.when", LabelCol: "user.kind", SplitCol: "user.part", FeatureCols: "*",
		Fill: "mean", Reverse: true}},
	"homogeneous": {Options: source.Options{Nodes: "nodes.csv", Edges: "edges.csv",
		FeatureCols: "a,b"}, Both: true},
	"undirected": {Options: source.Options{Nodes: "nodes.csv", Edges: "edges.csv",
		FeatureCols: "a,b"}, Undirected: true, FeatureDType: "f16"},
	"strings": {Options: source.Options{Nodes: "words.csv", Edges: "links.csv", LabelCol: "y"}},
	"dense":   {Options: source.Options{Edges: "dense.csv"}},
}

const memory = 256 << 20

// reading reads a store as lines of text.
type reading struct {
	t     *testing.T
	ctx   context.Context
	meta  *kv.Meta
	store *layout.Store
	dev   blockdev.Device
	files *openfiles.Set
	lines []string
}

func open(t *testing.T, fs vfs.FS, dir string) *reading {
	s, err := layout.Open(t.Context(), fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &reading{t: t, ctx: t.Context(), meta: s.Meta(), store: s, dev: layouttest.Device(t)}
	r.files = openfiles.New(s, r.dev, mem.NewBudget(0))
	t.Cleanup(func() { r.must(r.files.Close()) })
	return r
}

func (r *reading) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *reading) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// all reads all that a store has.
func (r *reading) all() []string {
	dict, err := r.files.IDs(r.ctx, 0)
	r.must(err)
	for v := range kv.NodeID(r.meta.Nodes) {
		ids, err := dict.External(r.ctx, []kv.NodeID{v}, nil)
		r.must(err)
		r.add("node %d %s", v, ids[0])
	}
	r.must(listfile.Scan(r.ctx, r.store, r.dev, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			r.add("lists %d %v %v %v %v %v", first, l.Off, l.Nbrs, l.Types, l.Weights, l.Times)
			return nil
		}))
	for _, m := range r.meta.Features {
		rows, err := r.files.Rows(r.ctx, m)
		r.must(err)
		x := make([]float32, int(r.meta.Nodes)*rows.Width())
		r.must(rows.Scan(r.ctx, 0, int(r.meta.Nodes), x))
		for _, v := range x {
			r.add("%s %s %08x", m.Name, m.DType, math.Float32bits(v))
		}
	}
	for _, t := range r.meta.NodeTypes {
		r.columns(t.Name, t.Columns)
	}
	for _, t := range r.meta.EdgeTables {
		r.columns(fmt.Sprint(t.Relation), append(slices.Clone(t.Columns), t.Starts))
	}
	for _, s := range r.meta.Splits {
		set, err := r.store.Split(r.ctx, s.Name)
		r.must(err)
		r.add("split %s %v", s.Name, set.ToArray())
	}
	if r.meta.Labels != nil {
		rows, err := r.files.Rows(r.ctx, r.meta.Labels.Rows)
		r.must(err)
		b := make([]byte, int(r.meta.Nodes)*r.meta.Labels.Rows.RowBytes)
		r.must(rows.ScanRaw(r.ctx, 0, int(r.meta.Nodes), b))
		r.add("labels %s %v %x", r.meta.Labels.Kind, r.meta.Labels.Classes, b)
	}
	return r.lines
}

func (r *reading) columns(of string, columns []kv.TableColumn) {
	for _, c := range columns {
		col, err := columnfile.Open(r.ctx, r.store, r.dev, c, nil)
		r.must(err)
		r.must(col.Scan(r.ctx, 0, c.Rows, nil, func(_ uint64, v *columnfile.Values) error {
			r.add("column %s of %s: %s %v", c.Name, of, c.Type, *v)
			return nil
		}))
		r.must(col.Close())
	}
}

// TestExportMakesAnEqualStore: what is exported and ingested again has the same ids, lists,
// columns, features, labels and splits, in the same order, and the catalog says the same of them.
func TestExportMakesAnEqualStore(t *testing.T) {
	for name, opt := range made {
		fs := vfs.NewMem()
		for path, text := range tables {
			layouttest.WriteFile(t, fs, path, []byte(text))
		}
		opt.Out, opt.Memory = "store", memory
		if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
			t.Fatal(name, err)
		}
		was := open(t, fs, "store")
		err := export.Export(t.Context(), was.store, was.dev, fs, export.Options{Out: "x",
			Memory: memory})
		if err != nil {
			t.Fatal(name, err)
		}
		s, err := schema.Read(fs, "x/schema.json")
		if err != nil {
			t.Fatal(name, err)
		}
		again := ingest.Options{Out: "again", Both: opt.Both,
			Options: source.Options{Memory: memory, LabelCol: s.Flags["label-col"],
				SplitCol:    s.Flags["split-col"],
				FeatureCols: s.Flags["feature-cols"], Reverse: s.Flags["reverse"] == "true"},
			FeatureDType: s.Flags["feature-dtype"], Normalize: s.Flags["normalize"]}
		if err := s.Apply(fs, "x", &again.Options); err != nil {
			t.Fatal(name, err)
		}
		if _, err := ingest.Run(t.Context(), fs, again); err != nil {
			t.Fatal(name, err)
		}
		got := open(t, fs, "again")
		if a, b := was.all(), got.all(); !slices.Equal(a, b) {
			t.Errorf("%s: the store reads\n%s\nand was\n%s", name, strings.Join(b, "\n"),
				strings.Join(a, "\n"))
		}
		if a, b := summary(was.meta), summary(got.meta); a != b {
			t.Errorf("%s: the catalog says\n%s\nand said\n%s", name, b, a)
		}
	}
}

// summary is what the catalog says of the graph, without its identity, how it was made, and whether
// columns have their values in features.
func summary(m *kv.Meta) string {
	c := *m
	c.UUID, c.Created, c.Source, c.Undirected = kv.UUID{}, time.Time{}, kv.SourceMeta{}, false
	c.Stats = kv.GraphStats{InHist: m.Stats.InHist, OutHist: m.Stats.OutHist,
		InMax: m.Stats.InMax, SelfLoops: m.Stats.SelfLoops}
	c.Files = slices.Clone(m.Files)
	for i := range c.Files {
		c.Files[i].Checksum = 0
	}
	// The features of a type come back as one vector, whose columns have no names, and of which
	// later rows are made.
	c.NodeTypes = slices.Clone(m.NodeTypes)
	for i := range c.NodeTypes {
		c.NodeTypes[i].Features, c.NodeTypes[i].Encoding = nil, nil
		columns := slices.Clone(c.NodeTypes[i].Columns)
		for k := range columns { // a vector has no columns for their values
			columns[k].Shared, columns[k].BlockRows = kv.FeatureAt{}, 0
		}
		c.NodeTypes[i].Columns = columns
	}
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestExportRefuses: a directory with files, and what a killed export left, stay as they are; an
// export that is stopped leaves nothing.
func TestExportRefuses(t *testing.T) {
	fs := vfs.NewMem()
	for path, text := range tables {
		layouttest.WriteFile(t, fs, path, []byte(text))
	}
	opt := made["typed"]
	opt.Out, opt.Memory = "store", memory
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	s := open(t, fs, "store")
	to := func(ctx context.Context, out string) error {
		return export.Export(ctx, s.store, s.dev, fs, export.Options{Out: out, Memory: memory})
	}
	s.must(fs.MkdirAll("full", 0o755))
	layouttest.WriteFile(t, fs, "full/mine", []byte("x"))
	s.must(fs.MkdirAll("left.tmp", 0o755))
	if err := to(t.Context(), "full"); !errors.Is(err, export.ErrNotEmpty) {
		t.Error(err)
	}
	if err := to(t.Context(), "left"); !errors.Is(err, export.ErrPart) {
		t.Error(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := to(stopped, "stopped"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, name := range []string{"stopped", "stopped.tmp", "full.tmp", "left"} {
		if _, err := fs.Stat(name); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}
