package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/internal/rng"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// flipPlaces is how many random bytes the flip tests try, each with all of its bits.
const flipPlaces = 200

// TestCatalogFlips flips bits at random places over all files: every one is found, by Verify and
// by opening, and the file is named.
func TestCatalogFlips(t *testing.T) {
	fs := prepared(t, 3)
	c, random := testCatalog(fs), rand.New(rand.NewPCG(3, 4))
	var paths []string
	var total int
	files := map[string][]byte{}
	for _, name := range must(fs.List(c.dir))(t) {
		if b := readAll(t, fs, fs.PathJoin(c.dir, name)); len(b) > 0 && name != lockName {
			paths, files[name] = append(paths, name), b
			total += len(b)
		}
	}
	for i := range flipPlaces {
		at, name := random.IntN(total), ""
		for _, name = range paths {
			if at < len(files[name]) {
				break
			}
			at -= len(files[name])
		}
		if i < 2*len(paths) { // both ends of every file
			name, at = paths[i/2], i%2*(len(files[paths[i/2]])-1)
		}
		path := fs.PathJoin(c.dir, name)
		for bit := range 8 {
			b := bytes.Clone(files[name])
			b[at] ^= 1 << bit
			writeAll(t, fs, path, b)
			if m, err := c.Meta(t.Context()); m != nil || !errors.Is(err, kv.ErrDamaged) ||
				!strings.Contains(err.Error(), "catalog/"+name) {
				t.Fatalf("%s byte %d bit %d: Meta gives %v, %v", name, at, bit, m, err)
			}
			found := must(c.Verify(t.Context()))(t)
			if len(found) != 1 || found[0].Path != "catalog/"+name {
				t.Fatalf("%s byte %d bit %d: findings %v", name, at, bit, found)
			}
		}
		if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r"}); !errors.Is(err, kv.ErrDamaged) {
			t.Fatalf("%s byte %d: a transaction went through: %v", name, at, err)
		}
		writeAll(t, fs, path, files[name])
	}
	checkWhole(t, c)
}

// TestCatalogLost truncates, extends and removes each file in turn, and swaps in an older one.
func TestCatalogLost(t *testing.T) {
	fs := prepared(t, 3)
	c := testCatalog(fs)
	older := readAll(t, fs, fs.PathJoin(c.dir, sealName))
	if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r", Epochs: 9}); err != nil {
		t.Fatal(err)
	}
	for _, name := range must(fs.List(c.dir))(t) {
		if name == lockName {
			continue
		}
		path := fs.PathJoin(c.dir, name)
		whole := readAll(t, fs, path)
		for what, change := range map[string]func(){
			"shorter": func() { writeAll(t, fs, path, whole[:max(len(whole), 1)-1]) },
			"longer":  func() { writeAll(t, fs, path, append(bytes.Clone(whole), 0)) },
			"missing": func() {
				if err := fs.Remove(path); err != nil {
					t.Fatal(err)
				}
			},
		} {
			if len(whole) == 0 && what == "shorter" {
				continue
			}
			change()
			want := kv.ErrDamaged
			if name == sealName && what == "missing" {
				want = kv.ErrNoStore // a catalog without a seal was never finished
			}
			if _, err := c.Meta(t.Context()); !errors.Is(err, want) ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: %v, want %v that names it", name, what, err, want)
			}
			writeAll(t, fs, path, whole)
		}
	}
	checkWhole(t, c)
	writeAll(t, fs, fs.PathJoin(c.dir, sealName), older)
	if _, err := c.Meta(t.Context()); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("an older seal: %v, want ErrDamaged", err)
	}
}

// TestCatalogLargeFlips damages a table of those too large to be read at every opening: whoever
// reads the damaged set is reported, nobody else is hindered, and Verify finds it.
func TestCatalogLargeFlips(t *testing.T) {
	skipShort(t)
	fs, random := vfs.NewMem(), rand.New(rand.NewPCG(5, 6))
	c, large := testCatalog(fs), roaring.New()
	c.opening = 100_000
	for i := range uint32(1 << 25) {
		if i>>16&1 == 0 && rng.Sub(1, uint64(i))&1 == 0 {
			large.Add(i)
		}
	}
	sets := testSets()
	sets["large"] = large
	if err := c.Create(t.Context(), testMeta(), sets); err != nil {
		t.Fatal(err)
	}
	files := must(c.readSeal())(t).files
	slices.SortFunc(files, func(a, b sealedFile) int { return cmp.Compare(b.size, a.size) })
	f := files[0] // the last to be read at opening, and the total is too much
	path := fs.PathJoin(c.dir, f.name)
	whole, skipped := readAll(t, fs, path), 0
	for i := range 40 {
		at := random.IntN(len(whole))
		if i < 20 { // footer and index
			at = len(whole) - 1 - i*7
		}
		b := bytes.Clone(whole)
		b[at] ^= 1 << random.IntN(8)
		writeAll(t, fs, path, b)
		if _, err := c.Meta(t.Context()); err == nil {
			skipped++
		}
		if set, err := c.Set(t.Context(), "large"); err == nil && !set.Equals(large) ||
			err != nil && !errors.Is(err, kv.ErrDamaged) {
			t.Fatalf("%s byte %d of %d: the set came out wrong, or %v", f.name, at, len(b), err)
		}
		found := must(c.Verify(t.Context()))(t)
		if len(found) != 1 || found[0].Path != "catalog/"+f.name {
			t.Fatalf("%s byte %d: findings %v", f.name, at, found)
		}
	}
	writeAll(t, fs, path, whole)
	if skipped == 0 {
		t.Error("opening verified all files: the set is not large enough for this test")
	}
	if got := must(c.Set(t.Context(), "large"))(t); !got.Equals(large) {
		t.Error("the large set is not what was written")
	}
}

// TestFatal: where Pebble ends the process by default, since its files contradict each other, a
// transaction fails with damage.
func TestFatal(t *testing.T) {
	c := mustCreate(t, vfs.NewMem())
	err := c.view(t.Context(), func(r reader) error {
		t.Cleanup(func() { _ = r.db.Close() })
		options(c.fs, nil).Logger.Fatalf("level %d overlaps", 3)
		return nil
	})
	if !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), "level 3 overlaps") {
		t.Errorf("%v", err)
	}
	if _, err := c.Meta(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	defer func() {
		if recover() != "a bug" {
			t.Error("another panic is hidden")
		}
	}()
	_ = c.run(newStage(c, must(c.readSeal())(t)), true, false, func(db *pebble.DB) error {
		t.Cleanup(func() { _ = db.Close() })
		panic("a bug")
	})
}
