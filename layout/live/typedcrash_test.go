package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// typedCrashStore makes a typed store with a level, and files of changes.
func typedCrashStore(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	for name, text := range map[string]string{"user.csv": "id,age\n1,2\n2,3",
		"item.csv": "id,name\na,x\nb,y", "buys.csv": "user,item,n\n1,a,1\n2,b,2",
		"new.csv": "id,age\n2,5\n3,9", "more.csv": "user,item,n\n3,a,4",
		"next.csv": "user,item,n\n1,b,6", "gone.txt": "2"} {
		writeText(t, fs, name, text)
	}
	opt := ingest.Options{Out: "s"}
	opt.Memory, opt.Reverse = 1<<30, true
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "user.csv"},
		{Type: "item", File: "item.csv"}}
	opt.Relations = buysFrom("buys.csv")
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	opt = ingest.Options{}
	opt.Memory, opt.Relations = 1<<30, buysFrom("next.csv")
	if _, err := Append(t.Context(), fs, "s", opt); err != nil {
		t.Fatal(err)
	}
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
		RNG: rand.New(rand.NewPCG(1, 1))})
}

func buysFrom(file string) []source.Relation {
	return []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: file}}
}

// TestTypedDisturbed does what TestDisturbed does with commits that write a typed store anew.
func TestTypedDisturbed(t *testing.T) {
	places := number("GDB_TEST_DISTURBED", disturbPlaces)
	acts := map[string]func(fs vfs.FS) error{
		"append": func(fs vfs.FS) error {
			opt := ingest.Options{}
			opt.Memory, opt.Relations = 1<<30, buysFrom("more.csv")
			opt.NodeTables = []source.NodeTable{{Type: "user", File: "new.csv"}}
			_, err := Append(t.Context(), fs, "s", opt)
			return err
		},
		"delete": func(fs vfs.FS) error {
			del := Deletion{}
			del.Memory = 1 << 30
			del.NodeTables = []source.NodeTable{{Type: "user", File: "gone.txt"}}
			_, err := Delete(t.Context(), fs, "s", del)
			return err
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			before := typedContents(t, typedCrashStore(t), "s", r)
			mem, ops := typedCrashStore(t), 0
			disturb := func(fn func(n int) error) error {
				ops = 0
				return act(errorfs.Wrap(mem, eachChange(&ops, fn)))
			}
			if err := disturb(func(int) error { return nil }); err != nil {
				t.Fatal(err)
			}
			after, all := typedContents(t, mem, "s", r), ops
			if before == after {
				t.Fatal("nothing was done")
			}
			for n := 0; n < all; n += max(1, all/places) {
				mem = typedCrashStore(t)
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
					if got := typedContents(t, left, "s", r); got != before && got != after {
						t.Fatalf("operation %d of %d: %s\nwant %s\nor %s", n, all, got, before,
							after)
					}
					opt := ingest.Options{}
					opt.Memory, opt.Relations = 1<<30, buysFrom("next.csv")
					if _, err := Append(t.Context(), left, "s", opt); err != nil {
						t.Fatalf("append after operation %d of %d failed: %v", n, all, err)
					}
					names, err := left.List("s/tmp")
					if err != nil || !slices.Equal(names, []string{"live.lock"}) {
						t.Errorf("operation %d of %d: in tmp are %v, %v", n, all, names, err)
					}
				}
			}
			t.Logf("%d operations", all)
		})
	}
}

// TestTypesAt: which nodes of each type came after a snapshot is known while it is read and no node
// was deleted.
func TestTypesAt(t *testing.T) {
	fs := typedCrashStore(t)
	first, err := layout.OpenAt(t.Context(), fs, "s", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	opt := ingest.Options{}
	opt.Memory, opt.NodeTables = 1<<30, []source.NodeTable{{Type: "user", File: "new.csv"}}
	if _, err := Append(t.Context(), fs, "s", opt); err != nil {
		t.Fatal(err)
	}
	s, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	counts, err := s.TypesAt(t.Context(), "1")
	if m := s.Meta(); err != nil || !slices.Equal(counts, []uint64{2, 2}) || m.Nodes != 5 ||
		m.Numbered != 2 || m.Moved != 0 {
		t.Errorf("counts %v, %v, of %+v", counts, err, m)
	}
	shifts, err := s.ShiftsSince(t.Context(), 1)
	if err != nil || !slices.Equal(shifts, []layout.Shift{{Was: 0, Now: 0, Nodes: 2}, {Was: 2,
		Now: 3, Nodes: 2}}) {
		t.Errorf("shifts %+v, %v", shifts, err)
	}
	if m := first.Meta(); m.Nodes != 4 || m.Numbered != 0 {
		t.Errorf("snapshot 1 has %d nodes", m.Nodes)
	}
	del := Deletion{}
	del.Memory, del.NodeTables = 1<<30, []source.NodeTable{{Type: "user", File: "gone.txt"}}
	if _, err := Delete(t.Context(), fs, "s", del); err != nil {
		t.Fatal(err)
	}
	if s, err = layout.OpenLive(t.Context(), fs, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TypesAt(t.Context(), "1"); err == nil ||
		!strings.Contains(err.Error(), "snapshot 3 deleted nodes") {
		t.Errorf("after a deletion: %v", err)
	}
}
