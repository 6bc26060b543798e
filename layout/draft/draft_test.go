package draft

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/inspect"
	"gdb/layout/live"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const memory = 1 << 30

func mustWrite(t *testing.T, fs vfs.FS, path, text string) {
	t.Helper()
	if err := files.WriteAtomic(fs, path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// contents returns the bytes of all files below a folder, by path; those of tmp are left out.
func contents(t *testing.T, fs vfs.FS, dir string, to map[string]string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case name == "tmp":
		case info.IsDir():
			contents(t, fs, path, to)
		default:
			f, err := fs.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(f)
			if err != nil || f.Close() != nil {
				t.Fatal(err)
			}
			to[path] = string(b)
		}
	}
	return to
}

// grown returns a store with a level and a small commit, and a run.
func grown(t *testing.T) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	mustWrite(t, fs, "n.csv", "id,a,b\np,1,2\nq,3,4\nr,5,6\n")
	mustWrite(t, fs, "e.csv", "src,dst\np,q\nq,r\n")
	opt := ingest.Options{Out: "s"}
	opt.Memory = memory
	opt.Nodes, opt.Edges, opt.FeatureCols = "n.csv", "e.csv", "a,b"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	more := func(nodes, edges string) {
		opt := ingest.Options{}
		opt.Memory = memory
		mustWrite(t, fs, "e2.csv", edges)
		if opt.Edges = "e2.csv"; nodes != "" {
			mustWrite(t, fs, "n2.csv", nodes)
			opt.Nodes, opt.FeatureCols = "n2.csv", "a,b"
		}
		if _, err := live.Append(t.Context(), fs, "s", opt); err != nil {
			t.Fatal(err)
		}
	}
	more("id,a,b\nx,7,8\n", "src,dst\nx,p\n")
	more("", "src,dst\np,r\n")
	mustRun(t, fs)
	return fs
}

func mustRun(t *testing.T, fs vfs.FS) {
	t.Helper()
	if err := fs.MkdirAll("s/runs/a/checkpoint-1", 0o755); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, fs, "s/runs/a/run.json", "{}")
	mustWrite(t, fs, "s/runs/a/LOCK", "")
	mustWrite(t, fs, "s/runs/a/checkpoint-1/state", "weights")
}

func mustOpen(t *testing.T, fs vfs.FS) *layout.Store {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newOptions(t *testing.T, fs vfs.FS) ingest.Options {
	t.Helper()
	mustWrite(t, fs, "new.csv", "id,b,c,a\ny,1,9,2\nz,3,9,4\n")
	mustWrite(t, fs, "more.csv", "src,dst\ny,z\nx,y\np,q\n")
	opt := ingest.Options{}
	opt.Memory = memory
	opt.Nodes, opt.Edges = "new.csv", "more.csv"
	return opt
}

// TestWithNodes: a draft has what the store has, small commits and levels too, and the new nodes.
// The store keeps its bytes, and nothing is left.
func TestWithNodes(t *testing.T) {
	fs := grown(t)
	for _, compacted := range []bool{false, true} {
		if compacted {
			_, err := live.Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: memory})
			if err != nil {
				t.Fatal(err)
			}
		}
		s, opt := mustOpen(t, fs), newOptions(t, fs)
		before := contents(t, fs, "s", map[string]string{})
		n, err := WithNodes(t.Context(), fs, s, "a", opt)
		if err != nil {
			t.Fatal(err)
		}
		m, was := n.Store.Meta(), s.Meta()
		if m.Nodes != was.Nodes+2 || m.Edges != was.Edges+3 || n.Since != was.Snapshot {
			t.Errorf("%d nodes, %d edges since %d; the store has %d and %d at %d", m.Nodes, m.Edges,
				n.Since, was.Nodes, was.Edges, was.Snapshot)
		}
		if a := n.Added; a.Nodes != 2 || a.OfNew != 2 || a.Between != 1 {
			t.Errorf("added %d nodes, %d edges of theirs, %d others", a.Nodes, a.OfNew, a.Between)
		}
		mustBeSound(t, n.Store)
		state := contents(t, fs, n.Store.Path("runs"), map[string]string{})
		for path := range state {
			if !strings.HasSuffix(path, "run.json") && !strings.HasSuffix(path, "1/state") {
				t.Errorf("the draft has %s", path)
			}
		}
		if len(state) != 2 {
			t.Errorf("of the run it has %d files", len(state))
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if after := contents(t, fs, "s", map[string]string{}); !maps.Equal(before, after) {
			t.Error("the store changed")
		}
		mustBeSound(t, mustOpen(t, fs))
		left, err := fs.List("s/tmp")
		slices.Sort(left)
		if err != nil || !slices.Equal(left, []string{"live.lock", "readers"}) {
			t.Errorf("in tmp there is %v, %v", left, err)
		}
	}
}

func mustBeSound(t *testing.T, s *layout.Store) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	report, err := inspect.Check(t.Context(), dev, s, inspect.CheckOptions{Full: true})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("%v, %v", report, err)
	}
}

// TestRefused: a node that the store has, and files without a node that it lacks, are errors, and
// the draft goes.
func TestRefused(t *testing.T) {
	fs := grown(t)
	s, opt := mustOpen(t, fs), newOptions(t, fs)
	for text, want := range map[string]string{"id,a,b\ny,1,2\nq,1,2\n": "node q is in the store",
		"id,a,b\n": "no new node", "id,a\ny,1\n": "b"} {
		mustWrite(t, fs, "new.csv", text)
		if want == "no new node" {
			mustWrite(t, fs, "more.csv", "src,dst\np,q\n")
		}
		n, err := WithNodes(t.Context(), fs, s, "a", opt)
		if n != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		left, err := fs.List("s/tmp")
		if err != nil || slices.ContainsFunc(left, func(name string) bool {
			return strings.HasPrefix(name, prefix)
		}) {
			t.Errorf("%q: in tmp there is %v, %v", text, left, err)
		}
	}
}

// TestSimplified: columns of edges, which keep stores of one type from being appended to, are left
// out of the draft alone.
func TestSimplified(t *testing.T) {
	fs := vfs.NewMem()
	mustWrite(t, fs, "n.csv", "id,a,b\nx,1,2\nq,3,4\n")
	mustWrite(t, fs, "e.csv", "src,dst,said\nx,q,hello\n")
	opt := ingest.Options{Out: "s"}
	opt.Memory, opt.Nodes, opt.Edges, opt.FeatureCols = memory, "n.csv", "e.csv", "a,b"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	mustRun(t, fs)
	s, more := mustOpen(t, fs), newOptions(t, fs)
	mustWrite(t, fs, "more.csv", "src,dst,said\ny,z,bye\nx,y,hm\n")
	n, err := WithNodes(t.Context(), fs, s, "a", more)
	if err != nil {
		t.Fatal(err)
	}
	if m := n.Store.Meta(); m.Nodes != 4 || m.Edges != 3 || len(m.EdgeTables) > 0 {
		t.Errorf("the draft has %d nodes, %d edges, %d tables", m.Nodes, m.Edges, len(m.EdgeTables))
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if s := mustOpen(t, fs); len(s.Meta().EdgeTables) != 1 {
		t.Errorf("the store has %d tables", len(s.Meta().EdgeTables))
	}
	m := &kv.Meta{SplitColumn: 2, Files: []kv.FileMeta{{Path: "topology/in.csc"}}}
	if !simplify(m) || m.SplitColumn != -1 || len(m.Files) != 1 || simplify(m) {
		t.Errorf("several columns of splits: %+v", m)
	}
}

// TestDead: a draft of a killed process is removed, and one that is used stays.
func TestDead(t *testing.T) {
	fs := grown(t)
	for _, name := range []string{"s/tmp/draft-dead", "s/tmp/draft-used"} {
		if err := fs.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, fs, name+"/x", "x")
		mustWrite(t, fs, name+".lock", "")
	}
	held, err := files.Lock(fs, "s/tmp/draft-used.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	d, err := New(t.Context(), fs, "s", "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := fs.List("s/tmp")
	slices.Sort(left)
	want := []string{"draft-used", "draft-used.lock", "live.lock", "readers"}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("in tmp there is %v, %v", left, err)
	}
}

// TestAsIngested: what the ingest was told of columns holds unless the options name others.
func TestAsIngested(t *testing.T) {
	m := &kv.Meta{Features: []kv.RowsMeta{{Name: "x", Dim: 2}},
		FeatureNames: map[string][]kv.ColumnMeta{"x": {{Name: "a"}, {Name: "b"}}}}
	m.Source.Args = []string{"--id-col=key", "--src-col=from", "--feature-cols=*", "--fill=mean",
		"--na=?", "--label-col=kind"}
	opt := source.Options{SrcCol: "head"}
	asIngested(m, &opt)
	want := source.Options{IDCol: "key", SrcCol: "head", FeatureCols: "a,b", NA: "?"}
	if opt.IDCol != want.IDCol || opt.SrcCol != want.SrcCol || opt.NA != want.NA ||
		opt.FeatureCols != want.FeatureCols || opt.Fill != "" {
		t.Errorf("%+v", opt)
	}
	if opt.LabelCol != "none" || opt.SplitCol != "none" {
		t.Errorf("labels are read of %q, splits of %q", opt.LabelCol, opt.SplitCol)
	}
	m.FeatureNames = nil
	opt = source.Options{Fill: "3"}
	if asIngested(m, &opt); opt.FeatureCols != "*" || opt.Fill != "3" ||
		opt.LabelCol != "" {
		t.Errorf("without names: %+v", opt)
	}
}

// sealedFS makes no folder and no lock, as where a store cannot be written to.
type sealedFS struct{ vfs.FS }

func (f sealedFS) MkdirAll(string, os.FileMode) error { return os.ErrPermission }

// TestUnwritable: where nothing can be written the error says that a draft has to be.
func TestUnwritable(t *testing.T) {
	fs := sealedFS{grown(t)}
	_, err := New(t.Context(), fs, "s", "a")
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "must be writable") {
		t.Errorf("%v", err)
	}
}
