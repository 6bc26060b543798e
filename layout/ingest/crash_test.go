package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"gdb/internal/mem"
	"gdb/kv/catalog"
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/splits"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fixedIdentity makes the identity of a store the same in every ingest.
func fixedIdentity(p *pipeline) *pipeline {
	p.random = bytes.NewReader(make([]byte, 1024))
	return p
}

// crashCases are small ingests that pass through all kinds of steps.
var crashCases = []struct {
	name string
	kind string
	opt  Options
	// sorted numbers the ids by sorting, as where they do not fit in memory.
	sorted bool
	// every is how many changes there are between two crashes that are tried. It is not a
	// divisor of the changes that one file takes, so that all kinds are met.
	every int
}{
	{"rows", "rows", Options{Undirected: true}, false, 1},
	{"integer", "integer", Options{Partitioner: "random", Partitions: 3, Both: true}, false, 3},
	{"wide", "integer", Options{}, true, 3},
	{"text", "text", Options{Dedup: true}, true, 1},
	{"table", "text", Options{Partitioner: "random"}, false, 3},
	{"edge splits", "integer", Options{Undirected: true, EdgeSplit: "random=50/25/25",
		Partitioner: "random"}, false, 11},
	{"edge splits of text", "text", Options{Undirected: true, EdgeSplit: "random=50/25/25"}, true,
		13},
	{"edge splits by time", "integer", Options{EdgeSplit: "time=0,1"}, false, 13},
	{"tables", "tables", typedOptions(), true, 17},
	{"tables of integers", "tables", typedOptions(), false, 23},
	{"tables with edge splits", "tables", drawn(typedOptions()), false, 29},
	{carriedCase, "tables", withoutReverse(typedOptions()), false, 23},
}

// carriedCase is the case whose edges carry the rows of their tables.
const carriedCase = "carried rows"

func withoutReverse(opt Options) Options {
	opt.Reverse = false
	return opt
}

func drawn(opt Options) Options {
	opt.EdgeSplit = "random=50/25/25"
	return opt
}

// prepare makes the pipeline of a case on a file system.
func prepare(t testing.TB, i int, fs vfs.FS, resume bool) *pipeline {
	c := crashCases[i]
	opt := c.opt
	opt.Out, opt.Resume = "dir/store", resume
	var src source.Source
	if c.kind == "tables" {
		src = keyedTables(t, &opt)
	} else {
		g := random(uint64(i), c.kind, 40, 300)
		g.typed, g.chunk, g.timed = true, 50, splits.AreEdgeTimes(opt.EdgeSplit)
		src = g
	}
	p := fixedIdentity(small(t, fs, src, opt))
	if c.sorted {
		p.Memory.IDs, p.Memory.Table = 8, 64
	}
	if c.name == carriedCase {
		p.Memory.Strings, p.Budget = 64<<20, mem.NewBudget(1<<30)
	}
	p.Memory.Counts = 0
	return p
}

// keyedTables opens tables of which one has a foreign key and one no key, in files that no crash
// takes away.
func keyedTables(t testing.TB, opt *Options) source.Source {
	opt.Relations = append(slices.Clone(opt.Relations),
		source.Relation{Src: "user", Name: "friend", Dst: "user", File: "users.csv"})
	opt.IDCol += ",color.none"
	files := typedFiles(t, map[string]string{
		"users.csv": "id,age,country,label,friend\n7,30,de,a,\n3,50,fr,b,7\n5,40,de,a,3\n"})
	src, err := source.Open(t.Context(), files, &opt.Options)
	if err != nil {
		t.Fatal(err)
	}
	src.Info().Paths = nil
	return src
}

// undisturbed is what each case gives when nothing happens.
func undisturbed(t testing.TB, i int) map[string]string {
	fs := vfs.NewMem()
	if _, err := prepare(t, i, fs, false).run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return storeFiles(t, fs, "dir/store")
}

// changes says whether an operation changes the file system.
func changes(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

// TestCrashAnywhere loses power before every change of the file system, keeping what was synced
// and none, half or all of what was not, and resumes: the store is the same, byte for byte.
func TestCrashAnywhere(t *testing.T) {
	for i, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := undisturbed(t, i)
			var clones []*vfs.MemFS
			mem := vfs.NewCrashableMem()
			ops, every := 0, c.every
			if testing.Short() {
				every = 20
			}
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if changes(op) {
					if ops%every == ops/every%every {
						clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{
							UnsyncedDataPercent: 50 * (ops % 3),
							RNG:                 rand.New(rand.NewPCG(uint64(ops), 7))}))
					}
					ops++
				}
				return nil
			}))
			if _, err := prepare(t, i, fs, false).run(context.Background()); err != nil {
				t.Fatal(err)
			}
			for n, clone := range clones {
				if _, err := prepare(t, i, clone, true).run(context.Background()); err != nil {
					t.Fatalf("crash %d: %v", n, err)
				}
				if sameFiles(t, storeFiles(t, clone, "dir/store"), want); t.Failed() {
					t.Fatalf("crash %d of %d", n, len(clones))
				}
			}
			t.Logf("%d crashes", len(clones))
		})
	}
}

// TestErrorAnywhere fails operations on the file system, one an ingest, with a full disk or a
// broken one: the ingest fails, nothing looks like a store, and resuming gives the same bytes.
// Cases begin at different operations, so that what they have in common fails at more of them.
func TestErrorAnywhere(t *testing.T) {
	for i, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := undisturbed(t, i)
			stride := 11
			if testing.Short() {
				stride = 41
			}
			if n, err := strconv.Atoi(os.Getenv("GDB_TEST_STRIDE")); err == nil {
				stride = max(1, n)
			}
			for n := 3 * i % stride; ; n += stride {
				cause := []error{syscall.ENOSPC, syscall.EIO}[n%2]
				mem, index, hit := vfs.NewMem(), 0, false
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if mayFail(op) {
						if index++; index == n+1 {
							hit = true
							return fmt.Errorf("injected: %w", cause)
						}
					}
					return nil
				}))
				_, err := prepare(t, i, fs, false).run(context.Background())
				if !hit {
					t.Logf("%d operations", index)
					break
				}
				afterError(t, i, mem, err, fmt.Sprintf("operation %d", n), want)
			}
		})
	}
}

// mayFail leaves out what may fail without harm: hints, and locks and listings that Pebble makes
// an end of the process of.
func mayFail(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename,
		errorfs.OpFileReadAt, errorfs.OpFileRead, errorfs.OpMkdirAll, errorfs.OpRemove,
		errorfs.OpFileClose, errorfs.OpOpenDir:
		return true
	}
	return false
}

func afterError(t *testing.T, i int, mem *vfs.MemFS, err error, what string,
	want map[string]string) {
	t.Helper()
	ctx := context.Background()
	meta, openErr := catalog.New(mem, "dir/store/catalog").Meta(ctx)
	if err == nil {
		// The operation was one whose failure does no harm, or nobody looked.
		if openErr != nil {
			t.Fatalf("%s: no error, and no store: %v", what, openErr)
		}
		sameFiles(t, storeFiles(t, mem, "dir/store"), want)
		return
	}
	nodes := uint64(40)
	if crashCases[i].kind == "tables" {
		nodes = 8
	}
	if openErr == nil && meta.Nodes != nodes {
		t.Fatalf("%s: half a store: %+v", what, meta)
	}
	if _, err := prepare(t, i, mem, true).run(ctx); err != nil {
		t.Fatalf("%s: resume: %v", what, err)
	}
	if sameFiles(t, storeFiles(t, mem, "dir/store"), want); t.Failed() {
		t.Fatal(what)
	}
}

// TestCancelAnywhere stops at every progress call, and resumes.
func TestCancelAnywhere(t *testing.T) {
	for i, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			want := undisturbed(t, i)
			for n := 0; ; n++ {
				fs, calls := vfs.NewMem(), 0
				ctx, cancel := context.WithCancel(context.Background())
				p := prepare(t, i, fs, false)
				p.Report = func(string, int64, int64, string) {
					if calls++; calls == n+1 {
						cancel()
					}
				}
				_, err := p.run(ctx)
				cancel()
				if calls <= n {
					break
				}
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("call %d: %v", n, err)
					}
					if _, err := prepare(t, i, fs, true).run(context.Background()); err != nil {
						t.Fatalf("call %d: resume: %v", n, err)
					}
				}
				if sameFiles(t, storeFiles(t, fs, "dir/store"), want); t.Failed() {
					t.Fatalf("call %d", n)
				}
			}
		})
	}
}

// TestFullDiskSaysWhatIsNeeded looks at the message.
func TestFullDiskSaysWhatIsNeeded(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && bytes.Contains([]byte(op.Path), []byte("in.csc")) {
			return syscall.ENOSPC
		}
		return nil
	}))
	_, err := prepare(t, 0, fs, false).run(context.Background())
	if err == nil || !errors.Is(err, syscall.ENOSPC) ||
		!bytes.Contains([]byte(err.Error()), []byte("go on with --resume")) {
		t.Errorf("got %v", err)
	}
}

// TestDamagedJournalIsRefused flips bytes of a journal.
func TestDamagedJournalIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := prepare(t, 0, fs, false).run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	path := "dir/store/tmp/ingest/" + layout.JournalName
	good := storeFiles(t, fs, "dir/store")["tmp/ingest/"+layout.JournalName]
	for at := 0; at < len(good); at += 7 {
		bad := []byte(good)
		bad[at] ^= 4
		layouttest.WriteFile(t, fs, path, bad)
		if _, err := prepare(t, 0, fs, true).run(context.Background()); err == nil {
			t.Fatalf("byte %d changed, and nobody noticed", at)
		}
	}
}
