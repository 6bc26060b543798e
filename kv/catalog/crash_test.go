package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"gdb/internal/files"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashClones runs op on fs and returns the file systems that a crash before each of its writes,
// and after the last, could leave: with nothing, half and all of what was not synced.
func crashClones(t *testing.T, fs *vfs.MemFS, op func(fs vfs.FS) error) []*vfs.MemFS {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var clones []*vfs.MemFS
	snap := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 50, 100} {
			clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: random}))
		}
	}
	hook := errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			snap()
		}
		return nil
	})
	if err := op(errorfs.Wrap(fs, hook)); err != nil {
		t.Fatal(err)
	}
	snap()
	return clones
}

// prepared returns a crashable catalog on which n transactions were done.
func prepared(t *testing.T, n int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll("store", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := files.SyncDir(fs, "/"); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		return fs
	}
	c := mustCreate(t, fs)
	for i := range n - 1 {
		if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r", Epochs: i}); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// epochOf returns the epochs of the run "r", or -1 if there is none.
func epochOf(t *testing.T, c *Catalog) int {
	t.Helper()
	for _, r := range must(c.Runs(t.Context()))(t) {
		if r.Name == "r" {
			return r.Epochs
		}
	}
	return -1
}

// checkWhole checks what no transaction on runs may change.
func checkWhole(t *testing.T, c *Catalog) {
	t.Helper()
	if got := must(c.Meta(t.Context()))(t); !reflect.DeepEqual(got, testMeta()) {
		t.Fatalf("metadata is %+v", got)
	}
	for name, want := range testSets() {
		if got := must(c.Set(t.Context(), name))(t); !got.Equals(want) {
			t.Fatalf("set %s is %v", name, got)
		}
	}
	if got := must(c.Verify(t.Context()))(t); len(got) > 0 {
		t.Fatalf("findings: %v", got)
	}
}

// skipShort skips a test of every fault, one after the other: it shows nothing more where races are
// looked for.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("every fault, one after the other")
	}
}

// TestCatalogCrash crashes transactions at every write: an ordinary one, one that merges files,
// and the one that creates the catalog.
func TestCatalogCrash(t *testing.T) {
	for _, done := range []int{1, tidyEvery - 1} {
		t.Run(fmt.Sprintf("transactions=%d", done), func(t *testing.T) {
			if done > 1 {
				skipShort(t)
			}
			fs := prepared(t, done)
			old := epochOf(t, testCatalog(fs))
			clones := crashClones(t, fs, func(fs vfs.FS) error {
				return testCatalog(fs).PutRun(t.Context(), kv.RunMeta{Name: "r", Epochs: 1000})
			})
			seen := map[int]int{}
			for i, clone := range clones {
				c := testCatalog(clone)
				got := epochOf(t, c)
				seen[got]++
				if got != old && got != 1000 || i >= len(clones)-3 && got != 1000 {
					t.Fatalf("crash %d of %d: epoch %d, before %d, written 1000", i/3,
						len(clones)/3, got, old)
				}
				checkWhole(t, c)
				if err := c.PutRun(t.Context(), kv.RunMeta{Name: "r", Epochs: 2000}); err != nil {
					t.Fatalf("crash %d: the next transaction: %v", i/3, err)
				}
				if got := epochOf(t, c); got != 2000 {
					t.Fatalf("crash %d: the next transaction left epoch %d", i/3, got)
				}
				checkWhole(t, c)
			}
			if seen[old] == 0 || seen[1000] < 3 || len(clones) < 30 {
				t.Errorf("the crashes missed a state: %v of %d", seen, len(clones))
			}
		})
	}
}

func TestCatalogCrashInCreate(t *testing.T) {
	clones := crashClones(t, prepared(t, 0), func(fs vfs.FS) error {
		return testCatalog(fs).Create(t.Context(), testMeta(), testSets())
	})
	none := 0
	for i, clone := range clones {
		c := testCatalog(clone)
		if _, err := c.Meta(t.Context()); errors.Is(err, kv.ErrNoStore) {
			none++
			if i >= len(clones)-3 {
				t.Fatal("Create returned, and the catalog is not there after a crash")
			}
			if err := c.Create(t.Context(), testMeta(), testSets()); err != nil {
				t.Fatalf("crash %d: create again: %v", i/3, err)
			}
		}
		checkWhole(t, c)
		if names := must(clone.List(c.dir))(t); len(names) > 10 {
			t.Errorf("crash %d: left behind: %q", i/3, names)
		}
	}
	if none < 30 || none > len(clones)-3 {
		t.Errorf("%d of %d crashes were before the commit", none, len(clones))
	}
}

// TestCatalogErrors fails each operation of the file system once, in every method: an error comes
// out or the work was done, nothing is lost, and no lock stays behind.
func TestCatalogErrors(t *testing.T) {
	skipShort(t)
	ctx := t.Context()
	run := kv.RunMeta{Name: "r", Epochs: 1000}
	base := prepared(t, tidyEvery-1) // so that the next transaction merges files
	old := epochOf(t, testCatalog(base))
	for name, op := range map[string]func(c *Catalog) error{
		"put": func(c *Catalog) error { return c.PutRun(ctx, run) },
		"meta": func(c *Catalog) error {
			m, err := c.Meta(ctx)
			if err == nil && !reflect.DeepEqual(m, testMeta()) {
				return fmt.Errorf("wrong metadata: %+v", m)
			}
			return err
		},
		"set": func(c *Catalog) error {
			set, err := c.Set(ctx, "train")
			if err == nil && !set.Equals(testSets()["train"]) {
				return fmt.Errorf("wrong set: %v", set)
			}
			return err
		},
		"verify": func(c *Catalog) error {
			found, err := c.Verify(ctx)
			if err == nil && len(found) > 0 {
				return fmt.Errorf("findings: %v", found)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			failures := 0
			for i := int32(0); ; i++ {
				fs := base.CrashClone(vfs.CrashCloneCfg{})
				at := errorfs.OnIndex(i)
				var met atomic.Bool
				inject := errorfs.InjectorFunc(func(o errorfs.Op) error {
					err := at.MaybeError(o)
					met.CompareAndSwap(false, err != nil)
					return err
				})
				err := op(testCatalog(errorfs.Wrap(fs, inject)))
				if err != nil {
					failures++
					if !errors.Is(err, errorfs.ErrInjected) {
						t.Errorf("operation %d failed, and the error is %v", i, err)
					}
				}
				c := testCatalog(fs)
				got := epochOf(t, c)
				if got != old && got != 1000 || name == "put" && err == nil && got != 1000 {
					t.Fatalf("operation %d failed with %v: epoch %d, before %d", i, err, got, old)
				}
				if name == "put" {
					checkWhole(t, c)
				}
				if !met.Load() {
					break
				}
			}
			if failures < 5 {
				t.Errorf("only %d operations could fail", failures)
			}
		})
	}
}
