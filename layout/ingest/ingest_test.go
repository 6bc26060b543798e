package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const testMemory = 128 << 20

// small is a pipeline with the small buffers that make a small graph spill many runs.
func small(t testing.TB, fs vfs.FS, src source.Source, opt Options) *pipeline {
	t.Helper()
	opt.Memory = testMemory
	p, err := newPipeline(fs, src, opt)
	if err != nil {
		t.Fatal(err)
	}
	p.Memory.Sort, p.Memory.Strings, p.Memory.Scatter = 6<<10, 16<<10, 128<<10
	p.Memory.Merge, p.RunBlock = 512<<10, 4096
	return p
}

func ingestAll(t testing.TB, fs vfs.FS, g *graph, opt Options) *reading {
	t.Helper()
	if opt.Out == "" {
		opt.Out = "store"
	}
	p := small(t, fs, g, opt)
	planned := p.plan().Files
	if _, err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := open(t, fs, opt.Out)
	var written []string
	for _, f := range r.meta.Files {
		written = append(written, f.Path)
	}
	if slices.Sort(written); !slices.Equal(planned, written) {
		t.Errorf("planned %v\nwritten %v", planned, written)
	}
	return r
}

func TestStoresHoldTheirGraph(t *testing.T) {
	options := map[string]Options{
		"plain":      {},
		"dedup":      {Dedup: true},
		"undirected": {Undirected: true},
		"loops":      {Undirected: true, KeepSelfLoops: true, Both: true},
		"duplicates": {Undirected: true, KeepDuplicates: true},
		"random":     {Partitioner: "random", Partitions: 5, Seed: 3, Both: true},
		"range":      {Partitioner: "range", Partitions: 7, Dedup: true},
	}
	payloads := map[string]func(g *graph){
		"bare":  func(*graph) {},
		"typed": func(g *graph) { g.typed = true },
		"timed": func(g *graph) { g.typed, g.weighted, g.timed = true, true, true },
		"weighted, multi": func(g *graph) {
			g.weighted, g.labelled = true, "multi"
			for _, m := range g.labels[:len(g.labels)/2] {
				g.labels = append(g.labels, member{m.name + "x", m.id}, m)
			}
		},
		"inverse": func(g *graph) { g.inverse, g.dim, g.labelled = true, 0, "" },
	}
	for _, kind := range []string{"rows", "integer", "text"} {
		for name, opt := range options {
			for what, change := range payloads {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, name, what), func(t *testing.T) {
					g := random(uint64(len(name)), kind, 150, 1100)
					change(g)
					if g.labelled == "" {
						g.labels = nil
					}
					ingestAll(t, vfs.NewMem(), g, opt).compare(g, opt)
				})
			}
		}
	}
}

// TestMergeWeights: of parallel edges one is kept, with the weight that is asked for.
func TestMergeWeights(t *testing.T) {
	for _, how := range []string{"mean", "min", "max", "last"} {
		for _, opt := range []Options{{Merge: how}, {Merge: how, Undirected: true, Both: true},
			{Merge: how, Undirected: true, KeepSelfLoops: true}} {
			for _, kind := range []string{"rows", "integer", "text"} {
				g := random(5, kind, 60, 1100)
				g.weighted, g.timed, g.typed = true, opt.Both, opt.Both
				ingestAll(t, vfs.NewMem(), g, opt).compare(g, opt)
			}
		}
	}
	g := random(5, "text", 60, 1100)
	g.weighted = true
	opt := Options{Out: "store", Merge: "error"}
	if _, err := RunSource(t.Context(), vfs.NewMem(), g, opt); err == nil ||
		!strings.Contains(err.Error(), "have different weights") {
		t.Errorf("weights that differ: %v", err)
	}
}

// TestPathsAgree: whatever the way and the memory, the bytes are the same.
func TestPathsAgree(t *testing.T) {
	for _, opt := range []Options{{}, {Undirected: true}, {Undirected: true, Merge: "last"},
		{Partitioner: "random", Partitions: 2, Both: true}} {
		opt.Out = "store"
		for _, kind := range []string{"rows", "integer", "text"} {
			g := random(5, kind, 200, 2000)
			g.timed, g.weighted = true, opt.Merge != ""
			build := func(change func(p *pipeline)) map[string]string {
				fs := vfs.NewMem()
				p := small(t, fs, g, opt)
				change(p)
				if err := p.begin(true); err != nil {
					t.Fatal(err)
				}
				p.Journal.UUID = kv.UUID{1, 2, 3}
				r, err := p.all(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.place(context.Background(), r); err != nil {
					t.Fatal(err)
				}
				if err := p.cleanUp(); err != nil {
					t.Fatal(err)
				}
				return storeFiles(t, fs, "store")
			}
			want := build(func(*pipeline) {})
			sameFiles(t, build(func(p *pipeline) {
				p.Memory, _ = steps.PlanMemory(testMemory)
			}), want)
			sameFiles(t, build(func(p *pipeline) { p.Memory.IDs = 8 }), want) // wide integers
			sameFiles(t, build(func(p *pipeline) { p.Memory.Counts = 0 }), want)
			sameFiles(t, build(func(p *pipeline) { p.Memory.Table = 64 }), want) // text by joins
			sameFiles(t, build(func(p *pipeline) { g.chunk = 1000 }), want)
			if t.Failed() {
				t.Fatalf("%s %+v", kind, opt)
			}
		}
	}
}

func TestDenseIntegersNeedNoDictionary(t *testing.T) {
	g := &graph{kind: "integer", edges: []edge{{src: "3", dst: "0"}, {src: "1", dst: "2"}}}
	for _, limit := range []int64{8, 1 << 20} { // wide and ranked
		fs := vfs.NewMem()
		p := small(t, fs, g, Options{Out: "store"})
		p.Memory.IDs = limit / 8
		if _, err := p.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, "store")
		if r.meta.IDs.Kind != kv.IDsDense {
			t.Errorf("ids are %s, want dense", r.meta.IDs.Kind)
		}
		r.compare(g, Options{})
	}
}

func TestLargeIntegers(t *testing.T) {
	g := &graph{kind: "integer", edges: []edge{{src: "18446744073709551615", dst: "7"},
		{src: "4294967296", dst: "18446744073709551615"}},
		table:  []string{"12345678901234567890", "7"},
		splits: []member{{"train", "18446744073709551615"}, {"val", "7"}}}
	ingestAll(t, vfs.NewMem(), g, Options{}).compare(g, Options{})
}

// TestHashCollision gives all ids one of few hashes at the first seeds.
func TestHashCollision(t *testing.T) {
	for _, table := range []int64{64, 1 << 20} { // ids numbered by sorting, and in memory
		g := random(4, "text", 100, 500)
		fs := vfs.NewMem()
		p := small(t, fs, g, Options{Out: "store"})
		p.Memory.Table = table
		p.hash = func(seed uint64, external []byte) uint64 {
			if seed < 2 {
				return ids.Hash(seed, external) % 64
			}
			return ids.Hash(seed, external)
		}
		if _, err := p.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, "store")
		if r.meta.IDs.HashSeed != 2 {
			t.Errorf("seed %d, want 2", r.meta.IDs.HashSeed)
		}
		r.compare(g, Options{})
	}
}

func TestEqualHashOfUnknownID(t *testing.T) {
	g := &graph{kind: "text", edges: []edge{{src: "a", dst: "b"}},
		splits: []member{{"train", "c"}}}
	p := small(t, vfs.NewMem(), g, Options{Out: "store"})
	p.hash = func(_ uint64, external []byte) uint64 { return uint64(external[0]-'a') % 2 }
	_, err := p.run(context.Background())
	want := `train row 0: split member of unknown node "c"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error about c", err)
	}
}

func TestTargets(t *testing.T) {
	g := &graph{kind: "rows", nodes: 4, edges: []edge{{src: "0", dst: "1"}}, labelled: "target",
		labels: []member{{"1.5", "2"}, {"nan", "1"}, {"-3", "0"}}}
	r := ingestAll(t, vfs.NewMem(), g, Options{})
	got := r.rows(r.meta.Labels.Rows)
	nan := float32(math.NaN())
	same := slices.EqualFunc(got, []float32{-3, nan, 1.5, nan}, func(a, b float32) bool {
		return a == b || a != a && b != b
	})
	if !same || r.meta.Labels.Labeled != 2 {
		t.Errorf("targets %v, %d labeled", got, r.meta.Labels.Labeled)
	}
}

func TestClassOrder(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"10", "9", "0"}, []string{"0", "9", "10"}},
		{[]string{"10", "9", "b"}, []string{"10", "9", "b"}},
		{[]string{"2", "1", "01"}, []string{"01", "1", "2"}},
	} {
		g := &graph{kind: "rows", nodes: len(c.in), labelled: "class"}
		for i, name := range c.in {
			g.labels = append(g.labels, member{name, fmt.Sprint(i)})
		}
		r := ingestAll(t, vfs.NewMem(), g, Options{})
		if !slices.Equal(r.meta.Labels.Classes, c.want) {
			t.Errorf("classes %q, want %q", r.meta.Labels.Classes, c.want)
		}
		r.compareLabels(g)
	}
}

func TestNormalize(t *testing.T) {
	g := random(2, "rows", 50, 60)
	for _, normalize := range []string{"row", "zscore"} {
		r := ingestAll(t, vfs.NewMem(), g, Options{Normalize: normalize})
		got := r.rows(r.meta.Features[0])
		for k := range g.dim {
			mean, square := 0.0, 0.0
			for n := range 50 {
				v := float64(got[n*g.dim+k])
				mean += v / 50
				square += v * v / 50
			}
			if normalize == "zscore" && (math.Abs(mean) > 1e-5 || math.Abs(square-1) > 1e-4) {
				t.Errorf("column %d has mean %g and mean square %g", k, mean, square)
			}
		}
		for n := range 50 {
			sum := 0.0
			for _, v := range got[n*g.dim:][:g.dim] {
				sum += float64(v)
			}
			if normalize == "row" && math.Abs(sum-1) > 1e-5 {
				t.Errorf("row %d sums to %g", n, sum)
			}
		}
	}
}

func TestBadInputLeavesNothing(t *testing.T) {
	base := func(kind string) *graph { return random(3, kind, 30, 100) }
	for _, c := range []struct {
		name, kind, want string
		change           func(g *graph)
	}{
		{"id out of range", "rows", "edges row 5: source 30 is out of range: there are 30 nodes; " +
			"ids are row numbers, 0 to 29", func(g *graph) { g.edges[5].src = "30" }},
		{"huge id", "rows", "edges row 6: destination 99999999999 is out of range",
			func(g *graph) { g.edges[6].dst = "99999999999" }},
		{"label without a node", "integer", "labels row 3: label of unknown node 9999",
			func(g *graph) { g.labels[3].id = "9999" }},
		{"label out of range", "rows", "labels row 3: label of node 77, but there are 30 nodes",
			func(g *graph) { g.labels[3].id = "77" }},
		{"unknown in split", "text", `unknown node "nobody"`,
			func(g *graph) { g.splits[8].id = "nobody" }},
		{"overlap", "text", "is in", func(g *graph) {
			g.splits = []member{{"train", g.table[4]}, {"test", g.table[4]}}
		}},
		{"overlap of val", "text", "is in", func(g *graph) {
			g.splits = []member{{"val", g.table[4]}, {"train", g.table[4]}}
		}},
		{"overlap of val and test", "text", "is in", func(g *graph) {
			g.splits = []member{{"val", g.table[4]}, {"test", g.table[4]}}
		}},
		{"overlap of columns", "text", "is in", func(g *graph) {
			g.splits = []member{{"val@0", g.table[4]}, {"train@0", g.table[4]}}
		}},
		{"two labels", "text", "has another label already", func(g *graph) {
			g.labels = append(g.labels, member{"other", g.labels[2].id})
		}},
		{"missing row", "text", "has no row", func(g *graph) { g.rows = g.rows[1:] }},
		{"missing last row", "rows", "node 29 has no row",
			func(g *graph) { g.rows = g.rows[:29] }},
		{"row twice", "integer", "has a row already", func(g *graph) {
			g.rows = append(slices.Clone(g.rows), g.rows[3])
		}},
		{"row of unknown", "integer", "feature row of unknown node 5000", func(g *graph) {
			g.rows = append(slices.Clone(g.rows), "5000")
		}},
		{"empty", "integer", "there are no nodes", func(g *graph) { *g = graph{kind: g.kind} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, fs := base(c.kind), vfs.NewMem()
			c.change(g)
			_, err := small(t, fs, g, Options{Out: "a/store"}).run(context.Background())
			var bad *input.Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if _, err := fs.Stat("a/store"); !isNotExist(err) {
				t.Errorf("the store's directory is left: %v", err)
			}
			// In a directory of the user's, only what was written is removed.
			if err := fs.MkdirAll("b", 0o755); err != nil {
				t.Fatal(err)
			}
			_, err = small(t, fs, g, Options{Out: "b"}).run(context.Background())
			if names, err2 := fs.List("b"); err == nil || err2 != nil || len(names) != 0 {
				t.Errorf("%q is left: %v %v", names, err, err2)
			}
		})
	}
}

// TestSplitsThatMayOverlap: those of two columns, other than train, val and test, and one with a
// node twice.
func TestSplitsThatMayOverlap(t *testing.T) {
	g := random(3, "text", 30, 100)
	v := g.table[4]
	g.splits = []member{{"train@0", v}, {"train@0", v}, {"val@1", v}, {"test@2", v}, {"mine", v},
		{"other", v}}
	ingestAll(t, vfs.NewMem(), g, Options{})
}

func TestUsageErrors(t *testing.T) {
	for _, opt := range []Options{
		{},
		{Out: "s", Partitioner: "ldg"},
		{Out: "s", Partitions: 4},
		{Out: "s", Dedup: true, KeepDuplicates: true},
		{Out: "s", FeatureDType: "f64"},
		{Out: "s", Normalize: "max"},
		{Out: "s", BlockBytes: 5000},
		{Options: source.Options{Memory: 1 << 20}, Out: "s"},
	} {
		_, err := RunSource(context.Background(), vfs.NewMem(), random(1, "rows", 5, 5), opt)
		if !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: got %v, want a usage error", opt, err)
		}
	}
	g := random(1, "rows", 5, 5)
	for _, splits := range [][]member{{{"train@0", "1"}, {"test@0", "2"}},
		{{"train", "1"}, {"test", "2"}}} {
		g.splits = splits
		fs := vfs.NewMem()
		_, err := small(t, fs, g, Options{Out: "s", SplitColumn: 3}).run(context.Background())
		if !errors.Is(err, ErrUsage) {
			t.Errorf("split column: got %v, want a usage error", err)
		}
		if _, err := fs.Stat("s"); !isNotExist(err) {
			t.Errorf("split column: the directory is left: %v", err)
		}
	}
}

func TestPlaces(t *testing.T) {
	ctx, g, fs := context.Background(), random(1, "rows", 5, 5), vfs.NewMem()
	opt := Options{Out: "store"}
	if err := fs.MkdirAll("other/x", 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := small(t, fs, g, Options{Out: "other"}).run(ctx)
	if !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a directory with other things: %v", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := small(t, fs, g, opt).run(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := small(t, fs, g, opt).run(ctx); !errors.Is(err, ErrUnfinished) {
		t.Errorf("unfinished: %v", err)
	}
	_, err = layout.Open(ctx, fs, opt.Out)
	if !errors.Is(err, kv.ErrNoStore) || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("open unfinished: %v", err)
	}
	changed := opt
	changed.Resume, changed.Undirected = true, true
	if _, err := small(t, fs, g, changed).run(ctx); !errors.Is(err, ErrChanged) {
		t.Errorf("other options: %v", err)
	}
	opt.Resume = true
	ingestAll(t, fs, g, opt).compare(g, opt)
	// What a kill leaves once cleaning up has removed the journal.
	if err := fs.MkdirAll("store/tmp/ingest/runs", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := small(t, fs, g, opt).run(ctx); err != nil {
		t.Errorf("resumed when it is complete: %v", err)
	}
	if _, err := fs.Stat("store/tmp"); !isNotExist(err) {
		t.Errorf("temporary files of a complete store: %v", err)
	}
	for _, other := range []Options{{Out: "store"}, {Out: "store", Resume: true, Both: true}} {
		if _, err := small(t, fs, g, other).run(ctx); !errors.Is(err, ErrExists) {
			t.Errorf("a store: %v", err)
		}
	}
	opt.Out = "fresh"
	ingestAll(t, fs, g, opt).compare(g, opt)
}

func TestNotesAndProgress(t *testing.T) {
	var notes bytes.Buffer
	phases := map[string]bool{}
	g := random(1, "text", 20, 100)
	opt := Options{Options: source.Options{Notes: &notes}, Progress: func(phase string, done,
		total int64, unit string) {
		phases[phase+" "+unit] = true
	}}
	opt.Out = "store"
	p := small(t, vfs.NewMem(), g, opt)
	p.Memory.Table = 64
	if _, err := p.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes.String(), "is read as memory") {
		t.Errorf("notes %q", notes.String())
	}
	for _, want := range []string{"read edges edges", "number ids ids", "number sources edges",
		"number destinations edges", "write in-lists edges", "write features rows"} {
		if !phases[want] {
			t.Errorf("no progress of %q in %v", want, phases)
		}
	}
}
