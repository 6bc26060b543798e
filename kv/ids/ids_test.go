package ids

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

const testSeed = 42

// entry is what the forward dictionary holds.
type entry struct {
	hash uint64
	ext  string
	id   kv.NodeID
}

func testDevice(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{})
}

// writeIDs writes the dictionary of a store in dir whose node i has the external id exts[i].
func writeIDs(fs vfs.FS, dir string, exts []string, hash func(string) uint64) (*kv.Meta, error) {
	m := &kv.Meta{UUID: kv.UUID{9, 8, 7}, Nodes: uint64(len(exts)),
		IDs: kv.IDsMeta{Kind: kv.IDsString, HashSeed: testSeed}}
	if err := fs.MkdirAll(fs.PathJoin(dir, "ids"), 0o755); err != nil {
		return nil, err
	}
	var entries []entry
	for i, ext := range exts {
		entries = append(entries, entry{hash(ext), ext, kv.NodeID(i)})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.ext, b.ext))
	})
	fw, err := NewForwardWriter(fs, fs.PathJoin(dir, ForwardPath), m.UUID, testSeed)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := fw.Add(e.hash, []byte(e.ext), e.id); err != nil {
			return nil, errors.Join(err, fw.Abort())
		}
	}
	f, err := fw.Finish()
	if err != nil {
		return nil, err
	}
	rw, err := NewReverseWriter(fs, fs.PathJoin(dir, ReversePath), m.UUID)
	if err != nil {
		return nil, err
	}
	for _, ext := range exts {
		if err := rw.Add([]byte(ext)); err != nil {
			return nil, errors.Join(err, rw.Abort())
		}
	}
	r, err := rw.Finish()
	m.Files = []kv.FileMeta{f, r}
	return m, err
}

func hashTest(ext string) uint64 { return Hash(testSeed, []byte(ext)) }

// mustIDs writes a dictionary and opens it.
func mustIDs(t testing.TB, fs vfs.FS, exts []string) (*kv.Meta, Dictionary) {
	t.Helper()
	m, err := writeIDs(fs, "store", exts, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := Open(t.Context(), testDevice(t), fs, "store", m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, ids
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("node-%x", rng.Key(7, uint64(i)))
	}
	return out
}

// TestIDs looks up every id of dictionaries of several sizes both ways, and some that are not in.
func TestIDs(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", MaxBytes-8) + fmt.Sprintf("%08d", n) }
	var longs []string
	for i := range 50 {
		longs = append(longs, long(i))
	}
	cases := map[string][]string{
		"none": nil, "one": {"a"}, "empty id": {"", "a", "\x00", "\xff\xfe"}, "names": names(5000),
		"long": longs, "mixed": append(names(300), longs...),
	}
	for name, exts := range cases {
		t.Run(name, func(t *testing.T) {
			m, ids := mustIDs(t, vfs.NewMem(), exts)
			for i, ext := range exts {
				if id, err := ids.Internal(t.Context(), ext); err != nil || id != kv.NodeID(i) {
					t.Fatalf("Internal(%.20q) = %d, %v, want %d", ext, id, err, i)
				}
			}
			if reads := ids.(Stats).BlocksRead(); reads != uint64(len(exts)) {
				t.Errorf("%d lookups read %d blocks, want one each", len(exts), reads)
			}
			for _, ext := range []string{"missing", "node-", "b", "a\x00", long(99)} {
				_, err := ids.Internal(t.Context(), ext)
				if !errors.Is(err, kv.ErrNotFound) || !strings.Contains(err.Error(),
					fmt.Sprintf("%.100q", ext)) {
					t.Errorf("Internal(%.20q): %v, want ErrNotFound with the id", ext, err)
				}
			}
			manyAsOne(t, ids, append([]string{"missing", "b", long(99)}, exts...))
			var nodes []kv.NodeID
			for i := range exts {
				nodes = append(nodes, kv.NodeID(len(exts)-1-i), kv.NodeID(i))
			}
			got := must(ids.External(t.Context(), nodes, []string{"kept"}))(t)
			if len(got) != 1+len(nodes) || got[0] != "kept" {
				t.Fatalf("External appended %d strings to %q", len(got)-1, got[:1])
			}
			for i, id := range nodes {
				if got[1+i] != exts[id] {
					t.Fatalf("External of node %d is %.20q, want %.20q", id, got[1+i], exts[id])
				}
			}
			if _, err := ids.External(t.Context(), []kv.NodeID{kv.NodeID(m.Nodes)},
				nil); !errors.Is(err,
				kv.ErrNotFound) {
				t.Errorf("External of a node too many: %v, want ErrNotFound", err)
			}
		})
	}
}

// manyAsOne compares looking many ids up with looking up one by one.
func manyAsOne(t interface {
	Fatalf(format string, args ...any)
}, d Dictionary, asked []string) {
	ctx, got := context.Background(), make([]int64, len(asked))
	if err := InternalMany(ctx, d, asked, got); err != nil {
		t.Fatalf("InternalMany: %v", err)
	}
	for i, ext := range asked {
		want, err := d.Internal(ctx, ext)
		if err == nil && got[i] != int64(want) || err != nil && got[i] != None {
			t.Fatalf("InternalMany of %.20q: %d, want %d, %v", ext, got[i], want, err)
		}
	}
}

// TestIDsFileMeta compares the record of each file with its bytes.
func TestIDsFileMeta(t *testing.T) {
	fs := vfs.NewMem()
	m, _ := mustIDs(t, fs, names(100_000)) // more than one write and, forward, one index block
	for _, f := range m.Files {
		b := readAll(t, fs, "store/"+f.Path)
		if int64(len(b)) != f.Size || codec.Checksum(b) != f.Checksum || f.Size%4096 != 0 {
			t.Errorf("%s: %d bytes with checksum %08x, the record says %+v", f.Path, len(b),
				codec.Checksum(b), f)
		}
		if f.Kind != string(b[12:16]) {
			t.Errorf("%s: kind %q in the header, %q in the record", f.Path, b[12:16], f.Kind)
		}
	}
}

func readAll(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeAll(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Clone(b)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestForwardCollisions gives many ids one hash, over several blocks, and sees that every lookup
// compares the strings and finds its own.
func TestForwardCollisions(t *testing.T) {
	for _, buckets := range []uint64{1, 2, 7, 40} {
		t.Run(fmt.Sprint(buckets), func(t *testing.T) {
			hash := func(ext string) uint64 { return hashTest(ext) % buckets }
			var entries []entry
			for i, ext := range names(1000) {
				entries = append(entries, entry{hash(ext), ext, kv.NodeID(i)})
			}
			slices.SortFunc(entries, func(a, b entry) int {
				return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.ext, b.ext))
			})
			fs := vfs.NewMem()
			w := must(newForwardForTest(fs))(t)
			for _, e := range entries {
				if err := w.Add(e.hash, []byte(e.ext), e.id); err != nil {
					t.Fatal(err)
				}
			}
			must(w.Finish())(t)
			m := &kv.Meta{Nodes: 1000, IDs: kv.IDsMeta{Kind: kv.IDsString, HashSeed: testSeed}}
			f := must(openForward(t.Context(), testDevice(t), fs, "store", m))(t)
			for _, e := range entries {
				if id, err := f.lookupHash(t.Context(), e.hash, e.ext); err != nil || id != e.id {
					t.Fatalf("lookup of %s: %d, %v, want %d", e.ext, id, err, e.id)
				}
			}
			many, asked, got := []hashed{{0, 0}}, []string{"missing"}, make([]int64, 1001)
			for i, e := range entries {
				many, asked = append(many, hashed{e.hash, uint32(i + 1)}), append(asked, e.ext)
			}
			if err := f.lookupHashed(t.Context(), many, asked, got); err != nil || got[0] != None {
				t.Fatalf("lookup of many: missing is %d, %v", got[0], err)
			}
			for i, e := range entries {
				if got[i+1] != int64(e.id) {
					t.Fatalf("lookup of many: %s is %d, want %d", e.ext, got[i+1], e.id)
				}
			}
			if _, err := f.lookupHash(t.Context(), 0, "missing"); !errors.Is(err, kv.ErrNotFound) {
				t.Errorf("lookup of a missing id with a hash that is there: %v", err)
			}
		})
	}
}

func newForwardForTest(fs vfs.FS) (*ForwardWriter, error) {
	if err := fs.MkdirAll("store/ids", 0o755); err != nil {
		return nil, err
	}
	return NewForwardWriter(fs, "store/"+ForwardPath, kv.UUID{}, testSeed)
}

func TestWritersRefuse(t *testing.T) {
	fs := vfs.NewMem()
	long := bytes.Repeat([]byte("x"), MaxBytes+1)
	for name, add := range map[string]func(w *ForwardWriter) error{
		"hash descends": func(w *ForwardWriter) error { return w.Add(4, []byte("a"), 1) },
		"id descends":   func(w *ForwardWriter) error { return w.Add(5, []byte("a"), 1) },
		"same id":       func(w *ForwardWriter) error { return w.Add(5, []byte("b"), 1) },
		"too long":      func(w *ForwardWriter) error { return w.Add(6, long, 1) },
	} {
		w := must(newForwardForTest(fs))(t)
		if err := w.Add(5, []byte("b"), 0); err != nil {
			t.Fatal(err)
		}
		if err := add(w); err == nil || !strings.Contains(err.Error(), ForwardPath) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
		if _, err := w.Finish(); err == nil {
			t.Errorf("%s: Finish after an error gave none", name)
		}
		if err := w.Abort(); err != nil {
			t.Errorf("%s: Abort after Finish: %v", name, err)
		}
	}
	w := must(NewReverseWriter(fs, "store/"+ReversePath, kv.UUID{}))(t)
	if err := w.Add(long); err == nil || !strings.Contains(err.Error(), "2001 bytes") {
		t.Errorf("a long id: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

func TestDenseIDs(t *testing.T) {
	m := &kv.Meta{Nodes: 100, IDs: kv.IDsMeta{Kind: kv.IDsDense}}
	ids := must(Open(t.Context(), nil, nil, "", m))(t)
	for ext, want := range map[string]kv.NodeID{"0": 0, "7": 7, "99": 99} {
		if got, err := ids.Internal(t.Context(), ext); err != nil || got != want {
			t.Errorf("Internal(%q) = %d, %v", ext, got, err)
		}
	}
	for _, ext := range []string{"", "007", "+7", "-1", "100", "1e1", "7 ", " 7", "0x1", "٣", "1_0",
		"18446744073709551616"} {
		if _, err := ids.Internal(t.Context(), ext); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("Internal(%q): %v, want ErrNotFound", ext, err)
		}
	}
	got, err := ids.External(t.Context(), []kv.NodeID{5, 0, 99}, nil)
	if err != nil || !slices.Equal(got, []string{"5", "0", "99"}) {
		t.Errorf("External = %q, %v", got, err)
	}
	if _, err := ids.External(t.Context(), []kv.NodeID{5, 100}, nil); !errors.Is(err,
		kv.ErrNotFound) {
		t.Errorf("External(100): %v, want ErrNotFound", err)
	}
	if _, err := Open(t.Context(), nil, nil, "", &kv.Meta{}); !errors.Is(err, kv.ErrFormat) {
		t.Errorf("unknown kind: %v, want ErrFormat", err)
	}
}

// TestIDsOfAnotherStore refuses files of another store, seed or size by name.
func TestIDsOfAnotherStore(t *testing.T) {
	fs := vfs.NewMem()
	m, _ := mustIDs(t, fs, names(500))
	for name, change := range map[string]func(m *kv.Meta){
		"uuid":  func(m *kv.Meta) { m.UUID[3]++ },
		"seed":  func(m *kv.Meta) { m.IDs.HashSeed++ },
		"nodes": func(m *kv.Meta) { m.Nodes++ },
	} {
		other := *m
		change(&other)
		_, err := Open(t.Context(), testDevice(t), fs, "store", &other)
		if !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), ForwardPath) {
			t.Errorf("another %s: %v, want ErrDamaged that names the file", name, err)
		}
	}
}

// TestIDsMatchMap compares the dictionary with a Go map on drawn ids and questions.
func TestIDsMatchMap(t *testing.T) {
	dev := testDevice(t)
	rapid.Check(t, func(t *rapid.T) {
		exts := rapid.SliceOfNDistinct(rapid.StringN(-1, -1, 300), 0, 400, rapid.ID).Draw(t, "ids")
		asked := rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "asked")
		fs := vfs.NewMem()
		m, err := writeIDs(fs, "store", exts, hashTest)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		ids, err := Open(ctx, dev, fs, "store", m)
		if err != nil {
			t.Fatal(err)
		}
		twin := map[string]kv.NodeID{}
		for i, ext := range exts {
			twin[ext] = kv.NodeID(i)
		}
		for _, ext := range append(asked, exts...) {
			id, err := ids.Internal(ctx, ext)
			want, ok := twin[ext]
			if ok != (err == nil) || ok && id != want {
				t.Fatalf("Internal(%q) = %d, %v, want %d, %v", ext, id, err, want, ok)
			}
		}
		manyAsOne(t, ids, append(asked, exts...))
		if len(exts) > 0 {
			nodes := rapid.SliceOf(rapid.Uint32Range(0, uint32(len(exts)-1))).Draw(t, "nodes")
			var of []kv.NodeID
			for _, id := range nodes {
				of = append(of, kv.NodeID(id))
			}
			got, err := ids.External(ctx, of, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range of {
				if got[i] != exts[id] {
					t.Fatalf("External(%d) = %q, want %q", id, got[i], exts[id])
				}
			}
		}
		if err := ids.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestIDsOnDisk looks up through each way to read that this machine has.
func TestIDsOnDisk(t *testing.T) {
	exts, dir := names(3000), t.TempDir()
	m, err := writeIDs(vfs.Default, dir, exts, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []blockdev.Backend{blockdev.URing, blockdev.Pread, blockdev.Buffered,
		blockdev.MMap} {
		t.Run(string(backend), func(t *testing.T) {
			dev, err := blockdev.Open(blockdev.Options{Backend: backend})
			if err != nil {
				t.Skipf("not here: %v", err)
			}
			ids := must(Open(t.Context(), dev, vfs.Default, dir, m))(t)
			for i := 0; i < len(exts); i += 97 {
				if err := lookUp(t, ids, exts, i); err != nil {
					t.Fatal(err)
				}
			}
			var nodes []kv.NodeID
			for i := range exts {
				nodes = append(nodes, kv.NodeID(i*1009%len(exts)))
			}
			got := must(ids.External(t.Context(), nodes, nil))(t)
			for i, id := range nodes {
				if got[i] != exts[id] {
					t.Fatalf("External(%d) = %q, want %q", id, got[i], exts[id])
				}
			}
			found := must(Verify(t.Context(), dev, vfs.Default, dir, m, true))(t)
			if len(found) > 0 {
				t.Errorf("findings %v", found)
			}
			if err := errors.Join(ids.Close(), dev.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIDCache compares names through caches of several sizes with those without, and holds that a
// block is read once where all fit, and that blocks that follow each other come by one read.
func TestIDCache(t *testing.T) {
	fs, exts := vfs.NewMem(), names(5000)
	m, _ := mustIDs(t, fs, exts)
	all := make([]kv.NodeID, 0, 2*len(exts))
	for i := range exts {
		all = append(all, kv.NodeID(i*7%len(exts)), kv.NodeID(i*11%len(exts)))
	}
	plain := must(Open(t.Context(), testDevice(t), fs, "store", m))(t)
	want := must(plain.External(t.Context(), all, nil))(t)
	for _, blocks := range []int64{0, 1, 3, 1 << 10} {
		dev, budget := testDevice(t), mem.NewBudget(16<<20)
		ids := must(Open(t.Context(), dev, fs, "store", m))(t)
		c := ids.(Cacher)
		if err := c.Cache(blocks*cachedBytes, budget); err != nil {
			t.Fatal(err)
		}
		for from := 0; from < len(all); from += 100 {
			got, err := ids.External(t.Context(), all[from:from+100], nil)
			if err != nil || !slices.Equal(got, want[from:from+100]) {
				t.Fatalf("%d blocks: nodes from %d on: %v", blocks, from, err)
			}
		}
		file := uint64(len(ids.(*dictionary).reverse.first))
		if s := c.CacheStats(); blocks == 1<<10 && (s.Misses != file || s.Hits == 0) {
			t.Errorf("%d blocks of a file of %d were read: %+v", s.Misses, file, s)
		}
		if err := ids.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d blocks: %d bytes are held: %v", blocks, budget.Used(), err)
		}
		if blocks > 0 {
			continue
		}
		ids = must(Open(t.Context(), dev, fs, "store", m))(t)
		before := dev.Stats().Reads
		if _, err := ids.External(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
		runs := (file*BlockBytes + scanBytes - 1) / scanBytes
		if reads := dev.Stats().Reads - before; reads > runs {
			t.Errorf("all %d blocks took %d reads, want %d", file, reads, runs)
		}
	}
}
