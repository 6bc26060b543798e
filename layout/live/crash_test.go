package live

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"gdb/layout/ingest"
	"gdb/layout/parts"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashActs are what is disturbed: a small commit, one that is a level, deletions, a compaction.
func crashActs(t *testing.T) map[string]func(fs vfs.FS) error {
	edges := func(name string) (opt ingest.Options) {
		opt.Edges, opt.Memory = name, 1<<30
		return opt
	}
	return map[string]func(fs vfs.FS) error{
		"append": func(fs vfs.FS) error {
			_, err := Append(t.Context(), fs, "s", edges("more.csv"))
			return err
		},
		"large append": func(fs vfs.FS) error {
			defer largeAll()()
			_, err := Append(t.Context(), fs, "s", edges("more.csv"))
			return err
		},
		"delete nodes": func(fs vfs.FS) error {
			_, err := Delete(t.Context(), fs, "s", Deletion{DeleteNodes: "nodes.txt"})
			return err
		},
		"delete edges": func(fs vfs.FS) error {
			_, err := Delete(t.Context(), fs, "s", Deletion{Options: edges("more.csv")})
			return err
		},
		"compact": func(fs vfs.FS) error {
			_, err := Compact(t.Context(), fs, "s", parts.OrderOptions{Memory: 1 << 30})
			return err
		},
	}
}

// crashStore makes a store with a level that is held, and files for crashActs.
func crashStore(t *testing.T) *vfs.MemFS { return crashStoreOf(t, "") }

// crashStoreOf does so with splits of the edges.
func crashStoreOf(t *testing.T, split string) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	h := &trial{T: t, fs: fs}
	h.write("e.csv", "src,dst\na,b\nb,c\nc,c\nd,a\n")
	h.write("more.csv", "src,dst\nb,a\nb,c\n")
	h.write("next.csv", "src,dst\na,c\n") // of nodes that stay
	h.write("nodes.txt", "d\nb\n")
	opt := ingest.Options{Out: "s", KeepSelfLoops: true, EdgeSplit: split}
	opt.Edges, opt.Memory = "e.csv", 1<<30
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	opt = ingest.Options{}
	opt.Edges, opt.Memory = "more.csv", 1<<30
	if _, err := Append(t.Context(), fs, "s", opt); err != nil {
		t.Fatal(err)
	}
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
		RNG: rand.New(rand.NewPCG(1, 1))})
}

// disturbPlaces is how many operations of an act are disturbed, unless GDB_TEST_DISTURBED says.
const disturbPlaces = 8

// TestDisturbed fails operations on the file system, and loses power before them: the store is as
// it was, or as it is after the act. The next commit finds nothing in its way, and leaves nothing.
func TestDisturbed(t *testing.T) {
	disturbed(t, crashActs(t), func() *vfs.MemFS { return crashStore(t) })
}

// TestDividedDisturbed is TestDisturbed of a store whose edges are in splits.
func TestDividedDisturbed(t *testing.T) {
	acts := crashActs(t)
	delete(acts, "large append") // all are
	delete(acts, "compact")      // there is nothing to compact
	disturbed(t, acts, func() *vfs.MemFS { return crashStoreOf(t, "random=50/50/0") })
}

func disturbed(t *testing.T, acts map[string]func(fs vfs.FS) error, store func() *vfs.MemFS) {
	places := number("GDB_TEST_DISTURBED", disturbPlaces)
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			before := contents(t, store(), "s", r)
			mem, ops := store(), 0
			// disturb calls fn before each change of the file system.
			disturb := func(fn func(n int) error) error {
				ops = 0
				return act(errorfs.Wrap(mem, eachChange(&ops, fn)))
			}
			if err := disturb(func(int) error { return nil }); err != nil {
				t.Fatal(err)
			}
			after, all := contents(t, mem, "s", r), ops
			if before == after && name != "compact" {
				t.Fatal("nothing was done")
			}
			for n := 0; n < all; n += max(1, all/places) {
				mem = store()
				var lost *vfs.MemFS
				_ = disturb(func(at int) error { // what fails may do no harm
					if at != n {
						return nil
					}
					lost = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (n % 3),
						RNG: rand.New(rand.NewPCG(uint64(n), 7))})
					return fmt.Errorf("injected: %w", []error{syscall.ENOSPC, syscall.EIO}[n%2])
				})
				for _, left := range []*vfs.MemFS{mem, lost} {
					if got := contents(t, left, "s", r); got != before && got != after {
						t.Fatalf("operation %d of %d: %s\nwant %s\nor %s", n, all, got, before,
							after)
					}
					opt := ingest.Options{}
					opt.Edges, opt.Memory = "next.csv", 1<<30
					if _, err := Append(t.Context(), left, "s", opt); err != nil {
						t.Fatalf("append after operation %d of %d failed: %v", n, all, err)
					}
					sound(t, left, "s")
				}
			}
			t.Logf("%d operations", all)
		})
	}
}

// eachChange calls fn before each change of a file system, with the number of changes before it.
func eachChange(ops *int, fn func(n int) error) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpRemoveAll {
			return nil
		}
		*ops++
		return fn(*ops - 1)
	})
}
