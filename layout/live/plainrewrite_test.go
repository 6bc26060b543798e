package live

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// notedEdges are edges with columns, some of them parallel, both ways or loops.
const notedEdges = "src,dst,since,note\nn0,n1,2020-01-01,a\nn1,n2,2020-01-02,\nn1,n0,,c\n" +
	"n0,n1,2020-01-04,d\nn2,n2,2020-01-05,e\nn2,n3,2020-01-06,f\nn3,n2,2020-01-07,g\n"

// TestNotedShapes: stores whose edges have columns, of all shapes, become what one ingest makes of
// all edges: of parallel edges that are dropped the first stays, whichever commit has it and
// whichever way it goes.
func TestNotedShapes(t *testing.T) {
	for name, set := range map[string]func(opt *ingest.Options){
		"directed":   func(*ingest.Options) {},
		"dedup":      func(opt *ingest.Options) { opt.Dedup = true },
		"undirected": func(opt *ingest.Options) { opt.Undirected = true },
		"loops":      func(opt *ingest.Options) { opt.Undirected, opt.KeepSelfLoops = true, true },
		"parallel":   func(opt *ingest.Options) { opt.Undirected, opt.KeepDuplicates = true, true },
		"split":      func(opt *ingest.Options) { opt.EdgeSplit = "time=2020-01-06,2020-01-07" },
		"drawn":      func(opt *ingest.Options) { opt.EdgeSplit, opt.Seed = "random=50/25/25", 3 },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			writeText(t, fs, "e.csv", notedEdges)
			// The columns come in another order, and keep the types that the store has.
			more := "note,dst,src,since\n1,n1,n4,2021-01-01\n2,n4,n1,2021-01-02\n" +
				"3,n2,n1,2021-01-03\n7,n0,n4,\n"
			writeText(t, fs, "more.csv", more)
			opt := ingest.Options{}
			opt.Edges, opt.Memory = "e.csv", 1<<30
			once := notedEdges + "n4,n1,2021-01-01,1\nn1,n4,2021-01-02,2\nn1,n2,2021-01-03,3\n" +
				"n4,n0,,7\n"
			if set(&opt); strings.HasPrefix(opt.EdgeSplit, "time") { // each edge needs one
				writeText(t, fs, "e.csv", strings.ReplaceAll(notedEdges, ",,", ",2020-01-03,"))
				writeText(t, fs, "more.csv", strings.ReplaceAll(more, "n4,\n", "n4,2020-01-03\n"))
				once = strings.ReplaceAll(strings.ReplaceAll(once, "0,,7", "0,2020-01-03,7"),
					"n0,,c", "n0,2020-01-03,c")
				opt.TimeCol = "since"
			}
			opt.Out = "s"
			if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
				t.Fatal(err)
			}
			add := ingest.Options{}
			add.Edges, add.Memory, add.TimeCol = "more.csv", 1<<30, opt.TimeCol
			done, err := Append(t.Context(), fs, "s", add)
			if err != nil || !done.Anew {
				t.Fatal(done, err)
			}
			writeText(t, fs, "once.csv", once)
			opt.Edges, opt.Out, opt.UUID = "once.csv", "once", done.UUID
			want, err := ingest.Run(t.Context(), fs, opt)
			if err != nil {
				t.Fatal(err)
			}
			sameFiles(t, fs, "s", open(t, fs, "").Meta(), "once", want)
			sound(t, fs, "s")
		})
	}
}

// TestNotedMany: edges that come in several chunks, some of them without columns, keep their own.
func TestNotedMany(t *testing.T) {
	fs := vfs.NewMem()
	r := rand.New(rand.NewPCG(3, 3))
	text := func(first, n int) string {
		b := &strings.Builder{}
		for i := range n {
			fmt.Fprintf(b, "n%d,n%d,%d,t%d\n", r.IntN(300), r.IntN(300), first+i, first+i)
		}
		return b.String()
	}
	const head = "src,dst,row,note\n"
	was, more := text(0, 30000), text(30000, 9000)
	writeText(t, fs, "e.csv", head+was)
	writeText(t, fs, "more.csv", head+more)
	writeText(t, fs, "once.csv", head+was+more)
	for _, undirected := range []bool{false, true} {
		opt := ingest.Options{Out: fmt.Sprint("s", undirected), Undirected: undirected}
		opt.Edges, opt.Memory = "e.csv", 1<<30
		if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
			t.Fatal(err)
		}
		add := ingest.Options{}
		add.Edges, add.Memory = "more.csv", 1<<30
		done, err := Append(t.Context(), fs, opt.Out, add)
		if err != nil {
			t.Fatal(err)
		}
		s, err := layout.OpenLive(t.Context(), fs, opt.Out)
		if err != nil {
			t.Fatal(err)
		}
		dir := opt.Out
		opt.Edges, opt.Out, opt.UUID = "once.csv", fmt.Sprint("once", undirected), done.UUID
		want, err := ingest.Run(t.Context(), fs, opt)
		if err != nil {
			t.Fatal(err)
		}
		sameFiles(t, fs, dir, s.Meta(), opt.Out, want)
	}
}

// TestNotedLack: an edge has null in columns that its file lacks; columns that the store lacks are
// refused, also by a store whose edges have none; those of a file of deletions are said to be
// passed over.
func TestNotedLack(t *testing.T) {
	fs := vfs.NewMem()
	writeText(t, fs, "e.csv", notedEdges)
	writeText(t, fs, "bare.csv", "src,dst\nn0,n1\nn1,n2\n")
	opt := ingest.Options{Out: "s"}
	opt.Edges, opt.Memory = "e.csv", 1<<30
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	opt.Edges, opt.Out = "bare.csv", "bare"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	writeText(t, fs, "more.csv", "src,dst,color\nn0,n1,red\n")
	add := ingest.Options{}
	add.Edges, add.Memory = "more.csv", 1<<30
	const want = "the edges have a column color, which those of the store"
	for _, dir := range []string{"s", "bare"} {
		if _, err := Append(t.Context(), fs, dir, add); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	add.Edges = "bare.csv"
	if _, err := Append(t.Context(), fs, "s", add); err != nil {
		t.Fatal(err)
	}
	writeText(t, fs, "once.csv", notedEdges+"n0,n1,,\nn1,n2,,\n")
	opt.Edges, opt.Out = "once.csv", "once"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	if exported(t, fs, "s", "a") != exported(t, fs, "once", "b") {
		t.Error("columns that a file lacks are not null")
	}
	notes := &bytes.Buffer{}
	del := Deletion{}
	writeText(t, fs, "gone.csv", "src,dst,note\nn0,n1,a\n")
	del.Edges, del.Memory, del.Notes = "gone.csv", 1<<30, notes
	done, err := Delete(t.Context(), fs, "s", del)
	if err != nil || done.Edges != 3 || !strings.Contains(notes.String(), "not looked at") {
		t.Errorf("%+v, %v, %q", done, err, notes)
	}
	// An edge without direction that is not there is one.
	writeText(t, fs, "e.csv", notedEdges)
	writeText(t, fs, "gone.csv", "src,dst\nn3,n0\nn3,n2\n")
	opt.Edges, opt.Out, opt.Undirected = "e.csv", "both", true
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	if done, err = Delete(t.Context(), fs, "both", del); err != nil || done.LostEdges != 1 ||
		done.Edges != 2 {
		t.Errorf("undirected: %+v, %v", done, err)
	}
	opt.Out, opt.EdgeSplit, opt.Seed = "split", "random=50/25/25", 7
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	if _, err := Append(t.Context(), fs, "split", add); err == nil ||
		!strings.Contains(err.Error(), "have no direction") {
		t.Errorf("undirected, in splits and with columns: %v", err)
	}
}
