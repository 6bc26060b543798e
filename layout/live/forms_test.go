package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/listfile"
	"gdb/layout/parts"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// someEdges returns lines of edges between nodes, a tenth of them to node 0. Weights depend on the
// ends, so that parallel edges are the same.
func someEdges(r *rand.Rand, n, nodes int) string {
	b := &strings.Builder{}
	for range n {
		src, dst := r.IntN(nodes), r.IntN(nodes)
		if r.IntN(10) == 0 {
			dst = 0
		}
		fmt.Fprintf(b, "%d,%d,%d\n", src, dst, (src*7+dst*3)%64)
	}
	return b.String()
}

// commitText appends edges to store s, or makes the store if there is none.
func commitText(t *testing.T, fs vfs.FS, first bool, text string) {
	t.Helper()
	f, err := fs.Create("e.csv", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("src,dst\n" + text))
	}
	if err == nil {
		err = f.Close()
	}
	opt := ingest.Options{}
	if opt.Edges, opt.Memory = "e.csv", 1<<30; first && err == nil {
		opt.Out = "s"
		_, err = ingest.Run(t.Context(), fs, opt)
	} else if err == nil {
		_, err = Append(t.Context(), fs, "s", opt)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// formsStore makes a store of some blocks of lists, with levels that add and take away edges.
func formsStore(t *testing.T, fs vfs.FS, weighted bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(6, 1))
	commit := func(text string) ingest.Options {
		f, err := fs.Create("e.csv", vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte("src,dst,weight\n" + text))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		opt := ingest.Options{}
		if opt.Edges, opt.Memory = "e.csv", 1<<30; weighted {
			opt.WeightCol = "weight"
		}
		return opt
	}
	first := someEdges(r, 60000, 5000)
	opt := commit(first)
	opt.Out = "s"
	_, err := ingest.Run(t.Context(), fs, opt)
	for _, nodes := range []int{5000, 5700} {
		if err == nil {
			text := someEdges(r, 20000, nodes)
			for v := 5000; v < nodes; v++ { // new ids have no gaps
				text += fmt.Sprintf("%d,%d,%d\n", v, v-1, (v*7+(v-1)*3)%64)
			}
			_, err = Append(t.Context(), fs, "s", commit(text))
		}
		if err == nil {
			gone := strings.Join(strings.SplitAfter(first, "\n")[100*nodes/50:][:900], "")
			opt := commit(gone)
			opt.WeightCol = "none"
			_, err = Delete(t.Context(), fs, "s", Deletion{Options: opt})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestForms compares what all readers give of a store with levels, whole lists and drawn entries,
// with what they give after a compaction.
func TestForms(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		fs := vfs.NewMem()
		formsStore(t, fs, weighted)
		var want listfile.Lists
		for _, compacted := range []bool{false, true} {
			if compacted {
				compact(t, fs)
			}
			s, err := layout.OpenLive(t.Context(), fs, "s")
			if err != nil {
				t.Fatal(err)
			}
			for _, opt := range []topology.Options{{CacheBytes: 1 << 16}, {Resident: true},
				{Resident: true, Form: topology.Packed}, {Resident: true, Form: topology.Compact}} {
				opt.Weights = weighted
				got := formLists(t, s, opt)
				if want.Off == nil {
					want = got
				}
				if !slices.Equal(got.Off, want.Off) || !slices.Equal(got.Nbrs, want.Nbrs) ||
					!slices.Equal(got.Weights, want.Weights) {
					t.Fatalf("compacted %v, %+v: other lists", compacted, opt)
				}
			}
		}
		if n := want.Off[1]; n < 5000 {
			t.Fatalf("the list of the hub has %d entries", n)
		}
	}
}

// formLists reads all lists of a form, whole and by draws from many lists together.
func formLists(t *testing.T, s *layout.Store, opt topology.Options) (whole listfile.Lists) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	top, err := topology.Open(t.Context(), s, dev, layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	session := top.NewSession()
	defer session.Release()
	all, deg := make([]layout.NodeID, top.Nodes()), make([]uint32, top.Nodes())
	for i := range all {
		all[i] = layout.NodeID(i)
	}
	l, err := session.Lists(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	whole = listfile.Lists{Off: slices.Clone(l.Off), Nbrs: slices.Clone(l.Nbrs),
		Weights: slices.Clone(l.Weights)}
	for _, take := range []int{1, 3} { // of each list all entries, or every third
		if err := session.Degrees(t.Context(), all, deg); err != nil {
			t.Fatal(err)
		}
		var pos []uint32
		var at []uint64
		off := []uint32{0}
		for i, d := range deg {
			for x := 0; x < int(d); x += take {
				pos, at = append(pos, uint32(x)), append(at, whole.Off[i]+uint64(x))
			}
			off = append(off, uint32(len(pos)))
		}
		got := make([]layout.NodeID, len(pos))
		err := session.Gather(t.Context(), off, pos, got)
		to := topology.Attributes{}
		if opt.Weights && err == nil {
			to.Weights = make([]float32, len(pos))
			err = session.(topology.AttributeReader).GatherAttributes(t.Context(), off, pos, to)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range at {
			if got[i] != whole.Nbrs[k] || opt.Weights && to.Weights[i] != whole.Weights[k] {
				t.Fatalf("%+v: entry %d that is drawn is not that at %d of all lists", opt, i, k)
			}
		}
	}
	return whole
}

// TestRecoded compares compact lists of a store with a level, of which most blocks are taken as
// they are, with plain ones, and the memory that they take with what is announced. Node 6000 has a
// list of several blocks, and no level has it.
func TestRecoded(t *testing.T) {
	fs, r, base := vfs.NewMem(), rand.New(rand.NewPCG(8, 1)), &strings.Builder{}
	const nodes = 9000
	for v := range 120000 {
		dst := 1 + v%(nodes-1)
		if r.IntN(8) == 0 {
			dst = 6000
		}
		fmt.Fprintf(base, "%d,%d\n", r.IntN(nodes), dst)
	}
	commitText(t, fs, true, base.String()+"8999,0\n")
	text := ""
	for v := range 2000 { // too many for a small commit with those that follow
		text += strings.Repeat(fmt.Sprintf("%d,%d\n", v, []int{3, 10, 6001, 8998}[v%4]), 9)
	}
	commitText(t, fs, false, text+"9000,8999\n8999,9000\n")
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	opt := topology.Options{Resident: true}
	want := formLists(t, s, opt)
	opt.Form = topology.Compact
	got := formLists(t, s, opt)
	if !slices.Equal(got.Off, want.Off) || !slices.Equal(got.Nbrs, want.Nbrs) {
		t.Error("compact lists are others than plain ones")
	}
	if note := recodedNote(t, s); note != "" {
		t.Errorf("the note is %q", note)
	}
}

// TestRecodedLarger: where a level makes lists much longer in bits, they are merged when entries
// are drawn, which is said.
func TestRecodedLarger(t *testing.T) {
	fs, base, far := vfs.NewMem(), &strings.Builder{}, &strings.Builder{}
	const nodes = 30000
	for v := range nodes {
		for k := range 12 {
			fmt.Fprintf(base, "%d,%d\n", (v+k)%nodes, v)
		}
		fmt.Fprintf(far, "%d,%d\n", (v+nodes/2)%nodes, v)
	}
	commitText(t, fs, true, base.String())
	commitText(t, fs, false, far.String())
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	opt := topology.Options{Resident: true}
	want := formLists(t, s, opt)
	opt.Form = topology.Compact
	if got := formLists(t, s, opt); !slices.Equal(got.Nbrs, want.Nbrs) {
		t.Error("compact lists are others than plain ones")
	}
	if note := recodedNote(t, s); !strings.Contains(note, "merged as they are drawn") {
		t.Errorf("the note is %q", note)
	}
}

// recodedNote opens compact lists, checks that they take what is announced, and returns what is
// said of them.
func recodedNote(t *testing.T, s *layout.Store) string {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	opt := topology.Options{Resident: true, Form: topology.Compact, Budget: mem.NewBudget(0)}
	top, err := topology.Open(t.Context(), s, dev, layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	const rounding = 20 * 4096 // of arenas to pages
	announced := topology.ResidentBytes(s, layout.In, topology.Compact)
	if most := opt.Budget.Peak(); most > announced+rounding || most < announced/2 {
		t.Errorf("compact lists took %d bytes, %d are announced", most, announced)
	}
	if used := opt.Budget.Used(); top.Stats().Bytes > used || top.Stats().Bytes < used*3/4 {
		t.Errorf("stats say %d bytes, %d are held", top.Stats().Bytes, used)
	}
	return top.Stats().Neighbors.Note
}

// TestCompactRefused: a compaction says beforehand that it has too little memory to read all
// levels, and what is enough; with that it works.
func TestCompactRefused(t *testing.T) {
	fs := vfs.NewMem()
	formsStore(t, fs, false)
	_, err := Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: 100 << 20})
	if err == nil || !strings.Contains(err.Error(), "4 levels as one, the least is 128 MiB") {
		t.Fatalf("in 100 MiB: %v", err)
	}
	_, err = Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: 128 << 20})
	if err != nil {
		t.Fatalf("in 128 MiB: %v", err)
	}
}
