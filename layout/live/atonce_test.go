package live

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestAtOnce: large commits of edges alone make the store that an ingest of all makes, whatever its
// ids are: row numbers, integers that fit in a set in memory or do not, text.
func TestAtOnce(t *testing.T) {
	for name, id := range map[string]func(v int) string{
		"dense":   func(v int) string { return fmt.Sprint(v) },
		"integer": func(v int) string { return fmt.Sprint(7 * v) },
		"wide":    func(v int) string { return fmt.Sprint(1<<50 + 7*v) },
		"text":    func(v int) string { return fmt.Sprintf("n%d", v) },
	} {
		t.Run(name, func(t *testing.T) {
			allLarge(t)
			r := rand.New(rand.NewPCG(3, 3))
			tr, fs := &trial{T: t}, vfs.NewMem()
			tr.fs = fs
			opt := ingest.Options{Out: "s", Both: true, KeepSelfLoops: true}
			opt.Edges, opt.Memory = "e.csv", 100<<20
			all, nodes := "", 40
			for i := range 4 {
				text := ""
				for v := range nodes { // ids ascend where they first appear
					text += fmt.Sprintf("%s,%s\n", id(v), id(r.IntN(v+1)))
				}
				tr.write("e.csv", "src,dst\n"+text)
				var err error
				if i == 0 {
					_, err = ingest.Run(t.Context(), fs, opt)
				} else {
					more := ingest.Options{}
					more.Edges, more.Memory = "e.csv", 200<<20
					_, err = Append(t.Context(), fs, "s", more)
				}
				if err != nil {
					t.Fatal(err)
				}
				all, nodes = all+text, nodes+r.IntN(9)
			}
			tr.write("e.csv", "src,dst\n"+all)
			opt.Out = "once"
			if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
				t.Fatal(err)
			}
			if got, want := contents(t, fs, "s", r), contents(t, fs, "once", r); got != want {
				t.Errorf("appended:\n%s\nat once:\n%s", got, want)
			}
			s, err := layout.OpenLive(t.Context(), fs, "s")
			if err != nil || len(s.Levels()) != 3 {
				t.Errorf("the store has %d levels, want 3; %v", len(s.Levels()), err)
			}
		})
	}
}

// TestAtOnceRefused: ids that a store cannot take are refused in words, and nothing is left.
func TestAtOnceRefused(t *testing.T) {
	for _, of := range []struct{ base, more, why string }{
		{"0,1\n1,2", "2,4", "the next new node is 3"},
		{"0,1\n1,2", "2,x", "ids of this store are row numbers"},
		{"5,7\n7,9", "5,x", "ids of this store are integers"},
		{"0,1\n1,2", "0,1", "node 1 was deleted"},
		{"a,b\nb,c", "a,c\nb,c", "node b was deleted"},
	} {
		tr, fs := &trial{T: t}, vfs.NewMem()
		tr.fs = fs
		opt := ingest.Options{Out: "s"}
		opt.Edges, opt.Memory = "e.csv", 200<<20
		tr.write("e.csv", "src,dst\n"+of.base+"\n")
		if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
			t.Fatal(err)
		}
		if node, deleted := strings.CutSuffix(of.why, " was deleted"); deleted {
			tr.write("ids.txt", strings.TrimPrefix(node, "node ")+"\n")
			_, err := Delete(t.Context(), fs, "s", Deletion{DeleteNodes: "ids.txt"})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := contents(t, fs, "s", rand.New(rand.NewPCG(1, 1)))
		tr.write("e.csv", "src,dst\n"+of.more+"\n")
		opt.Out = ""
		undo := largeAll()
		_, err := Append(t.Context(), fs, "s", opt)
		undo()
		if err == nil || !strings.Contains(err.Error(), of.why) {
			t.Errorf("%q to %q: error %v, want %q", of.more, of.base, err, of.why)
		}
		if got := contents(t, fs, "s", rand.New(rand.NewPCG(1, 1))); got != want {
			t.Errorf("%q: the store is now %s", of.more, got)
		}
		sound(t, fs, "s")
	}
}
