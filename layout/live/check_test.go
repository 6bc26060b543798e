package live

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// check checks a store with all that there is to check.
func check(t *testing.T, fs vfs.FS, dir string) (*inspect.CheckReport, error) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s, err := layout.OpenAt(t.Context(), fs, dir, "")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return inspect.Check(t.Context(), dev, s, inspect.CheckOptions{Full: true})
}

// sound fails unless a store is, and nothing is left over.
func sound(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	r, err := check(t, fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) > 0 || len(r.Left) > 0 {
		t.Errorf("%+v, left %q", r.Findings, r.Left)
	}
}

// storeOfAll returns a store with a base, levels of files, deletions, a small commit, and a
// snapshot that a name keeps beyond a compaction.
func storeOfAll(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs, h := vfs.NewMem(), newHistory(rand.New(rand.NewPCG(1, 1)))
	for seed := uint64(2); len(h.parts) < 3; seed++ {
		h = newHistory(rand.New(rand.NewPCG(seed, 1)))
	}
	h.ingest(t, fs, h.parts[0], "s")
	add := func(p part) {
		if _, err := Append(t.Context(), fs, "s", h.options(t, fs, p, false)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err == nil {
		err = s.Catalog().Hold(t.Context(), "kept", 0)
	}
	if err == nil {
		add(h.parts[1])
		_, err = Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: 1 << 30})
	}
	if err != nil {
		t.Fatal(err)
	}
	add(h.parts[2])
	tr := &trial{T: t, fs: fs}
	tr.write("ids.txt", h.name(1)+"\n")
	if _, err := Delete(t.Context(), fs, "s", Deletion{DeleteNodes: "ids.txt"}); err != nil {
		t.Fatal(err)
	}
	add(part{edges: "src,dst\n" + h.name(2) + "," + h.name(3), nodes: "id\n"})
	return fs
}

// filesOf lists the files of a folder and of those in it.
func filesOf(t *testing.T, fs vfs.FS, dir string) (all []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		name = path.Join(dir, name)
		if info, err := fs.Stat(name); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			all = append(all, filesOf(t, fs, name)...)
		} else if info.Size() > 0 {
			all = append(all, name)
		}
	}
	return all
}

// contentOf returns the bytes of a file.
func contentOf(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, info.Size())
	if _, err := f.ReadAt(raw, 0); err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestCheckFindsDamage flips bits of every file of a store with levels, of those too that only an
// earlier snapshot has: a check names the file.
func TestCheckFindsDamage(t *testing.T) {
	fs := storeOfAll(t)
	sound(t, fs, "s")
	r := rand.New(rand.NewPCG(5, 5))
	all := filesOf(t, fs, "s")
	if !slices.ContainsFunc(all, func(f string) bool { return strings.HasSuffix(f, ".commit") }) ||
		!slices.Contains(all, "s/topology/in.csc") {
		t.Fatalf("the store has no small commit, or no former base: %q", all)
	}
	for _, name := range all {
		rel := strings.TrimPrefix(name, "s/")
		if strings.HasPrefix(rel, "tmp/") || path.Base(rel) == "LOCK" ||
			strings.Contains(rel, "catalog/marker") || strings.Contains(rel, "/OPTIONS") ||
			strings.HasSuffix(rel, ".log") {
			continue
		}
		good := contentOf(t, fs, name)
		for range 3 {
			bad := slices.Clone(good)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			(&trial{T: t, fs: fs}).write(name, string(bad))
			report, err := check(t, fs, "s")
			named := errors.Is(err, layout.ErrCorrupt) || err != nil &&
				strings.Contains(err.Error(), "catalog")
			if report != nil {
				for _, f := range report.Findings {
					named = named || f.Path == rel ||
						strings.HasPrefix(rel, path.Dir(f.Path)+"/") ||
						strings.HasPrefix(rel, f.Path+"/")
				}
			}
			if !named {
				t.Errorf("%s was damaged: the check says %+v, %v", rel, report, err)
			}
		}
		(&trial{T: t, fs: fs}).write(name, string(good))
	}
	sound(t, fs, "s")
}

// TestCheckLeft: what a killed commit has left is said, and is no damage.
func TestCheckLeft(t *testing.T) {
	fs := storeOfAll(t)
	if err := fs.MkdirAll("s/levels/99", 0o755); err != nil {
		t.Fatal(err)
	}
	(&trial{T: t, fs: fs}).write("s/levels/99/x", "left")
	r, err := check(t, fs, "s")
	if err != nil || len(r.Findings) > 0 || !slices.Equal(r.Left, []string{"levels/99"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
