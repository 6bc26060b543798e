package inspect_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullGraph is a graph with one of everything a store can hold.
func fullGraph(nodes, edges int) layouttest.Graph {
	g := layouttest.Random(11, nodes, edges)
	g.EdgeTypes, g.Weighted, g.Timed, g.Both = []string{"a", "b", "c"}, true, true, true
	g.Dim, g.DType, g.Features = 100, "f16", layouttest.Features(nodes, 100)
	g.Classes, g.Splits = layouttest.ClassNames(11), layouttest.Splits(nodes)
	g.Partitions = 3
	g.Multi = make([][]int, nodes)
	for v := range nodes {
		g.IDs = append(g.IDs, fmt.Sprintf("node-%d", v))
		if v%3 > 0 {
			g.Multi[v] = []int{v % 11, (v % 7) + 4}
			if v%11 == v%7+4 {
				g.Multi[v] = g.Multi[v][:1]
			}
		}
	}
	return g
}

func mustCheck(t testing.TB, s *layout.Store, opt inspect.CheckOptions) *inspect.CheckReport {
	t.Helper()
	r, err := inspect.Check(context.Background(), layouttest.Device(t), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkFinds checks that all findings are about path, and that one is about the byte at off: its
// block is in the file's own counting.
func checkFinds(t testing.TB, r *inspect.CheckReport, path string, off int64) {
	t.Helper()
	found := false
	for _, f := range r.Findings {
		if f.Path != path && !strings.HasSuffix(path, f.Path) {
			t.Errorf("finding about %s, damage is in %s: %+v", f.Path, path, f)
		}
		found = found || off >= f.Offset && off < f.Offset+8192 && f.Block >= 0
	}
	if !found {
		t.Errorf("damage at %d of %s was not found there: %+v", off, path, r.Findings)
	}
}

func TestCheckHealthy(t *testing.T) {
	multi := fullGraph(3000, 20000)
	class, target := fullGraph(3000, 20000), fullGraph(3000, 20000)
	class.Multi, target.Multi = nil, nil
	for v := range class.Nodes {
		class.Labels = append(class.Labels, int32(v%12-1))
		target.Targets = append(target.Targets, float32(v))
	}
	part := withUnknown(multi)
	for i, g := range []layouttest.Graph{multi, class, target, part, {Nodes: 5}, {}} {
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		for _, full := range []bool{false, true} {
			last, total := int64(0), int64(0)
			r := mustCheck(t, s, inspect.CheckOptions{Full: full, Progress: func(d, n int64) {
				last, total = d, n
			}})
			if len(r.Findings) > 0 {
				t.Errorf("graph %d: %+v", i, r.Findings)
			}
			if r.Files != len(s.Meta().Files) || r.Bytes != total || last != total {
				t.Errorf("graph %d: %d files, %d bytes of %d, progress %d", i, r.Files, r.Bytes,
					total, last)
			}
		}
	}
}

// withUnknown is a graph with labels that are unknown, a third of them.
func withUnknown(g layouttest.Graph) layouttest.Graph {
	g.Unknown = make([][]int, g.Nodes)
	for v, have := range g.Multi {
		for c := range g.Classes {
			if have != nil && (v+c)%3 == 0 && !slices.Contains(have, c) {
				g.Unknown[v] = append(g.Unknown[v], c)
			}
		}
	}
	return g
}

// TestCheckCountsUnknownLabels: another count in the catalog than in the rows is found.
func TestCheckCountsUnknownLabels(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "s", withUnknown(fullGraph(300, 2000)))
	s.Meta().Labels.Unknown--
	found := ""
	for _, f := range mustCheck(t, s, inspect.CheckOptions{Full: true}).Findings {
		found += f.What
	}
	if !strings.Contains(found, "are unknown, the catalog says") {
		t.Errorf("found: %s", found)
	}
}

// TestCheckSparse: rows whose columns do not ascend are found, and a dump says which entries rows
// have.
func TestCheckSparse(t *testing.T) {
	fs, g := vfs.NewMem(), fullGraph(300, 2000)
	g.DType = rowfile.Sparse
	s := layouttest.Build(t, fs, "s", g)
	if f := mustCheck(t, s, inspect.CheckOptions{Full: true}).Findings; len(f) > 0 {
		t.Fatalf("sound rows: %v", f)
	}
	m := s.Meta().Features[0]
	w, err := rowfile.NewWriter(fs, s.Path("features", "features"), rowfile.Spec{
		UUID: s.Meta().UUID, Name: m.Name, Path: m.Path, DType: m.DType, Dim: m.Dim,
		Words: m.RowBytes / 4, Nodes: s.Meta().Nodes})
	row := make([]byte, m.RowBytes)
	row[0], row[3], row[8], row[10] = 2, 0x80, 1, 1
	for v := uint64(0); err == nil && v < s.Meta().Nodes; v++ {
		err = w.Add(row)
	}
	if err == nil {
		_, _, err = w.Finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, f := range mustCheck(t, s, inspect.CheckOptions{}).Findings {
		found += f.What
	}
	if !strings.Contains(found, "row 0: column 1 of entry 1: columns ascend") {
		t.Errorf("found: %s", found)
	}
}

func TestCheckFindsFlippedBits(t *testing.T) {
	n := 260
	if testing.Short() {
		n = 40
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", fullGraph(1500, 12000))
	files := s.Meta().Files
	for i := range n {
		m := files[i%len(files)]
		off, bit := r.Int64N(m.Size), byte(1)<<r.IntN(8)
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		checkFinds(t, mustCheck(t, s, inspect.CheckOptions{Full: i%2 == 0}), m.Path, off)
		layouttest.Flip(t, fs, s.Path(m.Path), off, bit)
		if t.Failed() {
			t.Fatalf("bit %08b at offset %d of %s, %d bytes", bit, off, m.Path, m.Size)
		}
	}
	if f := mustCheck(t, s, inspect.CheckOptions{Full: true}).Findings; len(f) > 0 {
		t.Errorf("all bits are back: %+v", f)
	}
}

func TestCheckFindsCatalogBits(t *testing.T) {
	fs, r := vfs.NewMem(), rand.New(rand.NewPCG(5, 5))
	s := layouttest.Build(t, fs, "s", fullGraph(300, 2000))
	names, err := fs.List(s.Path("catalog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := s.Path("catalog", name)
		info, err := fs.Stat(path)
		if err != nil || info.Size() == 0 {
			continue
		}
		off := r.Int64N(info.Size())
		layouttest.Flip(t, fs, path, off, 4)
		if mustCheck(t, s, inspect.CheckOptions{}).Findings == nil {
			t.Errorf("bit at %d of %s was not found", off, path)
		}
		layouttest.Flip(t, fs, path, off, 4)
	}
}

// rewrite replaces a file by what change makes of its bytes.
func TestCheckFindsMisplaced(t *testing.T) {
	swap := func(size int, a, b int) func([]byte) []byte {
		return func(f []byte) []byte {
			x, y := f[4096+(a-1)*size:][:size], f[4096+(b-1)*size:][:size]
			for i := range x {
				x[i], y[i] = y[i], x[i]
			}
			return f
		}
	}
	cut := func(n int) func([]byte) []byte {
		return func(f []byte) []byte { return f[:len(f)-n] }
	}
	other := fullGraph(4500, 12000)
	copy(other.UUID[:], "another store's.")
	foreign := vfs.NewMem()
	layouttest.Build(t, foreign, "s", other)
	take := func(path string) func([]byte) []byte {
		return func([]byte) []byte {
			var out []byte
			layouttest.Rewrite(t, foreign, foreign.PathJoin("s", path), func(b []byte) []byte {
				out = slices.Clone(b)
				return b
			})
			return out
		}
	}
	g := fullGraph(4500, 12000)
	for _, c := range []struct {
		name, path string
		change     func([]byte) []byte
		block      int64
		what       string
	}{
		{"swapped blocks", "topology/in.csc", swap(4096, 2, 5), 2, "number 5"},
		{"swapped pages", "features/features.rows", swap(4096, 3, 4), 3, "checksum"},
		{"swapped sums", "features/features.crc", swap(4096, 1, 2), 1, "checksum"},
		{"other store", "topology/in.csc", take("topology/in.csc"), 0, "another store"},
		{"other store", "features/features.rows", take("features/features.rows"), 0, "another"},
		{"other store", "topology/out.idx", take("topology/out.idx"), 0, "another store"},
		{"other kind", "topology/in.idx", take("topology/out.idx"), 0, "another kind"},
		{"truncated", "topology/in.csc", cut(4096), -1, "bytes long"},
		{"truncated", "features/features.crc", cut(100), -1, "bytes long"},
		{"truncated", "labels/labels.rows", cut(4096), -1, "bytes long"},
		{"empty", "ids/reverse.ids", func([]byte) []byte { return nil }, -1, "bytes long"},
		{"longer", "topology/out.csr", func(b []byte) []byte {
			return append(b, make([]byte, 4096)...)
		}, -1, "bytes long"},
	} {
		t.Run(c.name+"/"+c.path, func(t *testing.T) {
			fs := vfs.NewMem()
			s := layouttest.Build(t, fs, "s", g)
			layouttest.Rewrite(t, fs, s.Path(c.path), c.change)
			for _, full := range []bool{false, true} {
				r := mustCheck(t, s, inspect.CheckOptions{Full: full})
				ok := slices.ContainsFunc(r.Findings, func(f kv.Finding) bool {
					return f.Path == c.path && f.Block == c.block &&
						strings.Contains(f.What, c.what)
				})
				if !ok || len(r.Findings) > 6 {
					t.Errorf("findings: %+v", r.Findings)
				}
				for _, f := range r.Findings {
					if f.Path != c.path {
						t.Errorf("finding about another file: %+v", f)
					}
				}
			}
		})
	}
}

func TestCheckFindsMissingAndExtra(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", fullGraph(500, 3000))
	for _, name := range []string{"features/stray.rows", "topology/buckets/0-1"} {
		if err := fs.MkdirAll(fs.PathDir(s.Path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create(s.Path(name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := fs.Remove(s.Path("labels/labels.crc")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range mustCheck(t, s, inspect.CheckOptions{Full: true}).Findings {
		got = append(got, f.Path+": "+f.What)
	}
	slices.Sort(got)
	want := []string{"features/stray.rows: the catalog does not list",
		"labels/labels.crc: the file is missing", "topology/buckets: the catalog does not"}
	if len(got) != len(want) {
		t.Fatalf("findings: %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("finding %q, want %q", got[i], want[i])
		}
	}
}

// TestCheckSaysWhatItLeavesOut: caches and runs are mentioned, if there are any.
func TestCheckSaysWhatItLeavesOut(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", fullGraph(50, 300))
	if r := mustCheck(t, s, inspect.CheckOptions{Full: true}); len(r.Unchecked) > 0 {
		t.Errorf("there is no %v", r.Unchecked)
	}
	for _, dir := range []string{"runs/r0001", "prep/superbatch-x", "tmp"} {
		if err := fs.MkdirAll(s.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := mustCheck(t, s, inspect.CheckOptions{}).Unchecked
	if want := []string{"prep", "runs"}; !slices.Equal(got, want) {
		t.Errorf("left out: %q, want %q", got, want)
	}
}

func TestCheckFile(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", fullGraph(500, 3000))
	layouttest.Flip(t, fs, s.Path("topology/in.idx"), 4100, 1)
	layouttest.Flip(t, fs, s.Path("ids/reverse.ids"), 4100, 1)
	for file, want := range map[string]int{"topology/in.idx": 1, "topology/in.csc": 0,
		"catalog": 0, "ids/reverse.ids": 1, "ids/forward.ids": 0} {
		r := mustCheck(t, s, inspect.CheckOptions{Full: true, File: file})
		if len(r.Findings) != want {
			t.Errorf("%s: %+v", file, r.Findings)
		}
	}
	_, err := inspect.Check(context.Background(), layouttest.Device(t), s,
		inspect.CheckOptions{File: "x"})
	if err == nil || !strings.Contains(err.Error(), "topology/in.csc") {
		t.Errorf("a file that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := inspect.Check(ctx, layouttest.Device(t), s, inspect.CheckOptions{}); err == nil {
		t.Error("a check that was cancelled has no error")
	}
}

// TestCheckFullFindsWrongMeaning writes stores whose bytes are whole and whose catalog or lists
// are wrong.
func TestCheckFullFindsWrongMeaning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *kv.Meta)
		what   string
	}{
		"edges":     {func(m *kv.Meta) { m.Edges++; m.Partitions[0].Edges++ }, "edges"},
		"histogram": {func(m *kv.Meta) { m.Stats.InHist[1]++ }, "degrees of bucket 1"},
		"largest":   {func(m *kv.Meta) { m.Stats.OutMax++ }, "largest degree"},
		"loops":     {func(m *kv.Meta) { m.Stats.SelfLoops++ }, "self loops"},
		"types":     {func(m *kv.Meta) { m.Stats.TypeCounts[2]++ }, "of type"},
		"few types": {func(m *kv.Meta) { m.EdgeTypes = m.EdgeTypes[:2] }, "has type 2 of 2"},
		"partition": {func(m *kv.Meta) { m.Partitions[1].Edges++; m.Partitions[2].Edges-- },
			"partition 1 has"},
		"gap":     {func(m *kv.Meta) { m.Partitions[1].First++ }, "begins with node"},
		"labeled": {func(m *kv.Meta) { m.Labels.Labeled++ }, "set \"labeled\" has"},
		"class":   {func(m *kv.Meta) { m.Labels.ClassCounts[3]++ }, "of class \"class3\""},
		"classes": {func(m *kv.Meta) { m.Labels.Classes = m.Labels.Classes[:9] }, "out of range"},
		"nodes":   {func(m *kv.Meta) { m.Nodes-- }, "header tells of"},
	} {
		t.Run(name, func(t *testing.T) {
			s := layouttest.Build(t, vfs.NewMem(), "s", fullGraph(600, 4000))
			c.change(s.Meta())
			r := mustCheck(t, s, inspect.CheckOptions{Full: true})
			if !slices.ContainsFunc(r.Findings, func(f kv.Finding) bool {
				return strings.Contains(f.What, c.what)
			}) {
				t.Errorf("findings: %+v", r.Findings)
			}
		})
	}
}

// TestCheckFindsUnsorted has a list out of order under a checksum that is right.
func TestCheckFindsUnsorted(t *testing.T) {
	fs := vfs.NewMem()
	g := layouttest.Graph{Nodes: 10, Edges: []layouttest.Edge{{Src: 1, Dst: 2}, {Src: 5, Dst: 2},
		{Src: 6, Dst: 2}}}
	s := layouttest.Build(t, fs, "s", g)
	layouttest.Rewrite(t, fs, s.Path("topology/in.csc"), func(b []byte) []byte {
		blk := b[4096:]
		if blk[52] != 4<<2|5<<5 { // packed: the ids less 1, in three bits each
			t.Fatalf("byte 52 is %x", blk[52])
		}
		blk[52] = 5<<2 | 4<<5
		sum := codec.BlockSum(layout.KindTopologyIn, s.Meta().UUID, 1, blk[4:])
		copy(blk, []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
		return b
	})
	for _, full := range []bool{false, true} {
		r := mustCheck(t, s, inspect.CheckOptions{Full: full})
		if len(r.Findings) != 1 || r.Findings[0].Block != 1 ||
			!strings.Contains(r.Findings[0].What, "id 5 after 6") {
			t.Errorf("findings: %+v", r.Findings)
		}
	}
}

// TestCheckFullTakesEqualNeighbors: duplicates that were kept are in order, and neighbors that are
// off by one are not.
func TestCheckFullTakesEqualNeighbors(t *testing.T) {
	fs := vfs.NewMem()
	g := layouttest.Graph{Nodes: 10, Edges: []layouttest.Edge{{Src: 4, Dst: 2}, {Src: 4, Dst: 2},
		{Src: 5, Dst: 2}}}
	s := layouttest.Build(t, fs, "s", g)
	if r := mustCheck(t, s, inspect.CheckOptions{Full: true}); len(r.Findings) > 0 {
		t.Errorf("findings of a sound store: %+v", r.Findings)
	}
	layouttest.Rewrite(t, fs, s.Path("topology/in.csc"), func(b []byte) []byte {
		blk := b[4096:]
		if blk[52] != 2<<2 { // packed: the ids less 4, in one bit each
			t.Fatalf("byte 52 is %x", blk[52])
		}
		blk[52] = 1 << 2 // 4, 5, 4
		sum := codec.BlockSum(layout.KindTopologyIn, s.Meta().UUID, 1, blk[4:])
		binary.LittleEndian.PutUint32(blk, sum)
		return b
	})
	r := mustCheck(t, s, inspect.CheckOptions{Full: true})
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].What, "id 4 after 5") {
		t.Errorf("findings: %+v", r.Findings)
	}
}

// TestCheckGoesOnAfterOddLengths: files that are cut off anywhere, or gone, are findings, and all
// others are looked at too.
func TestCheckGoesOnAfterOddLengths(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "s", fullGraph(600, 4000))
	cut := map[string]int{"topology/in.idx": 5, "features/features.crc": 4097,
		"labels/labels.rows": 511, "topology/out.csc": -1}
	for _, m := range s.Meta().Files {
		switch n, ok := cut[m.Path]; {
		case !ok:
		case n < 0:
			if err := fs.Remove(s.Path(m.Path)); err != nil {
				t.Fatal(err)
			}
		default:
			layouttest.Rewrite(t, fs, s.Path(m.Path), func(b []byte) []byte { return b[:n] })
		}
	}
	r := mustCheck(t, s, inspect.CheckOptions{Full: true})
	if r.Files != len(s.Meta().Files) {
		t.Errorf("%d of %d files were looked at", r.Files, len(s.Meta().Files))
	}
	for path := range cut {
		listed := func(m kv.FileMeta) bool { return m.Path == path }
		if !slices.ContainsFunc(s.Meta().Files, listed) {
			continue
		}
		if !slices.ContainsFunc(r.Findings, func(f kv.Finding) bool { return f.Path == path }) {
			t.Errorf("no finding about %s: %+v", path, r.Findings)
		}
	}
}
