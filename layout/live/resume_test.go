package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// resumeAct is a commit that is killed and goes on.
type resumeAct struct {
	store func(t *testing.T) *vfs.MemFS
	opt   ingest.Options
	typed bool
}

func (a *resumeAct) run(ctx context.Context, fs vfs.FS, resume bool) (*Added, error) {
	defer largeAll()()
	opt := a.opt
	opt.Memory, opt.Resume, opt.UUID = 1<<30, resume, kv.UUID{7}
	return Append(ctx, fs, "s", opt)
}

func (a *resumeAct) contents(t *testing.T, fs vfs.FS) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	if a.typed {
		return typedContents(t, fs, "s", r)
	}
	return contents(t, fs, "s", r)
}

func resumeActs() map[string]*resumeAct {
	plain := func(base, more string, flags func(opt *ingest.Options)) func(*testing.T) *vfs.MemFS {
		return func(t *testing.T) *vfs.MemFS {
			t.Helper()
			fs := vfs.NewCrashableMem()
			writeText(t, fs, "e.csv", base)
			writeText(t, fs, "n.csv", "id,kind,f\na,x,1\nb,y,2\nc,,3\nd,x,4\n")
			writeText(t, fs, "more.csv", more)
			opt := ingest.Options{Out: "s", KeepSelfLoops: true}
			opt.Edges, opt.Memory = "e.csv", 1<<30
			flags(&opt)
			if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
				t.Fatal(err)
			}
			return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
				RNG: rand.New(rand.NewPCG(1, 1))})
		}
	}
	var edges, tables, both ingest.Options
	edges.Edges = "more.csv"
	tables.Relations = buysFrom("buys.csv")
	both.Relations = buysFrom("more.csv")
	both.NodeTables = []source.NodeTable{{Type: "user", File: "new.csv"}}
	const words = "src,dst\na,b\nb,c\nc,c\nd,a\n"
	return map[string]*resumeAct{
		"words": {store: plain(words, "src,dst\nb,a\nx,c\nd,y\n",
			func(*ingest.Options) {}), opt: edges},
		"numbers": {store: plain("src,dst\n0,1\n1,2\n2,3\n", "src,dst\n3,1\n4,0\n",
			func(*ingest.Options) {}), opt: edges},
		"labels": {store: plain(words, "src,dst\nb,a\nd,c\n", func(opt *ingest.Options) {
			opt.Nodes, opt.LabelCol, opt.FeatureCols = "n.csv", "kind", "f"
		}), opt: edges},
		"splits": {store: plain(words+"a,c\na,d\nb,d\nd,c\n", "src,dst\nb,a\nx,c\nd,y\n",
			func(opt *ingest.Options) { opt.EdgeSplit = "random=50/50/0" }), opt: edges},
		"splits and labels": {store: plain(words+"a,c\na,d\nb,d\nd,c\n", "src,dst\nb,a\nd,c\n",
			func(opt *ingest.Options) {
				opt.EdgeSplit = "random=50/50/0"
				opt.Nodes, opt.LabelCol, opt.FeatureCols = "n.csv", "kind", "f"
			}), opt: edges},
		"typed edges": {store: typedCrashStore, opt: tables, typed: true},
		"typed nodes": {store: typedCrashStore, opt: both, typed: true},
	}
}

// errKilled is the error of each change after the process was killed.
var errKilled = errors.New("killed")

// killed returns a file system that fails each change from number n on, and counts them.
func killed(fs vfs.FS, n int, ops *int) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if *ops++; *ops > n {
			return errKilled
		}
		return nil
	}))
}

// TestResume kills commits at each change of the file system, with what was synced, or more, on the
// disk: they go on to the same store, with the same bytes, and leave nothing.
func TestResume(t *testing.T) {
	places := number("GDB_TEST_DISTURBED", 3*disturbPlaces)
	for name, act := range resumeActs() {
		t.Run(name, func(t *testing.T) {
			all, base := 0, act.store(t) // its identity is drawn
			store := func() *vfs.MemFS {
				return base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
					RNG: rand.New(rand.NewPCG(1, 1))})
			}
			whole := store()
			if _, err := act.run(t.Context(), killed(whole, 1<<30, &all), false); err != nil {
				t.Fatal(err)
			}
			want, wantFiles := act.contents(t, whole), levelFiles(t, whole)
			went, least := 0, all // changes that one had to do
			for n := 0; n < all; n += max(1, all/places) {
				mem, ops := store(), 0
				if _, err := act.run(t.Context(), killed(mem, n, &ops), false); err == nil {
					t.Fatalf("change %d of %d: killed without an error", n, all)
				}
				left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (n % 3),
					RNG: rand.New(rand.NewPCG(uint64(n), 7))})
				ops = 0
				_, err := act.run(t.Context(), killed(left, 1<<30, &ops), true)
				if err != nil && strings.Contains(err.Error(), "stopped: its last is snapshot") {
					if act.contents(t, left) != want {
						_, err = act.run(t.Context(), left, false)
					} else {
						err = nil // killed when all was done
					}
				} else {
					went, least = went+1, min(least, ops)
				}
				if err != nil {
					t.Fatalf("change %d of %d: %v", n, all, err)
				}
				if got := act.contents(t, left); got != want {
					t.Fatalf("change %d of %d: %s\nwant %s", n, all, got, want)
				}
				if got := levelFiles(t, left); !maps.EqualFunc(got, wantFiles, bytes.Equal) {
					t.Errorf("change %d of %d: other bytes in files %v, want those in %v", n, all,
						slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(wantFiles)))
				}
				names, err := left.List("s/tmp")
				if err != nil || !slices.Equal(names, []string{"live.lock"}) {
					t.Errorf("change %d of %d: in tmp are %v, %v", n, all, names, err)
				}
			}
			if went < min(places, all)/2 || least > all/2 {
				t.Errorf("%d commits went on, with %d of %d changes at least", went, least, all)
			}
		})
	}
}

// TestResumeAtMove kills commits when what they made is moved to its place, and right after: they
// go on with it, and make little anew.
func TestResumeAtMove(t *testing.T) {
	for name, act := range resumeActs() {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, moved=%t", name, moved), func(t *testing.T) {
				base, all := act.store(t), 0
				store := func() *vfs.MemFS {
					return base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
						RNG: rand.New(rand.NewPCG(1, 1))})
				}
				whole := store()
				if _, err := act.run(t.Context(), killed(whole, 1<<30, &all), false); err != nil {
					t.Fatal(err)
				}
				fs, isKilled := store(), false
				_, err := act.run(t.Context(), errorfs.Wrap(fs, errorfs.InjectorFunc(
					func(op errorfs.Op) error {
						if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
							return nil
						}
						at := op.Kind == errorfs.OpRename &&
							(op.Path == "s/tmp/live/level" || op.Path == "s/tmp/live/base")
						if at && moved && !isKilled {
							isKilled = true
							return nil
						}
						if isKilled = isKilled || at; isKilled {
							return errKilled
						}
						return nil
					})), false)
				if !errors.Is(err, errKilled) {
					t.Fatalf("%v, want that the move was found", err)
				}
				was, _ := base.List("s/levels") // there may be none yet
				if now, _ := fs.List("s/levels"); moved != (len(now) > len(was)) {
					t.Fatalf("there are the levels %v, of %v", now, was)
				}
				ops := 0
				if _, err := act.run(t.Context(), killed(fs, 1<<30, &ops), true); err != nil {
					t.Fatal(err)
				}
				if got, want := act.contents(t, fs), act.contents(t, whole); got != want {
					t.Errorf("%s\nwant %s", got, want)
				}
				if got, want := levelFiles(t, fs), levelFiles(t, whole); !maps.EqualFunc(got, want,
					bytes.Equal) {
					t.Errorf("other bytes in files %v, want those in %v",
						slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
				}
				if ops > all/3 {
					t.Errorf("going on takes %d of %d changes", ops, all)
				}
			})
		}
	}
}

// levelFiles returns the files of the levels of a store, but for their catalogs.
func levelFiles(t *testing.T, fs vfs.FS) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var walk func(path string)
	walk = func(path string) {
		names, err := fs.List(path)
		if err != nil {
			f, err := fs.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if all[path], err = io.ReadAll(f); err != nil {
				t.Fatal(err)
			}
			return
		}
		for _, name := range names {
			if name != "catalog" {
				walk(fs.PathJoin(path, name))
			}
		}
	}
	walk("s/levels")
	return all
}

// TestResumeRefused: a commit goes on with the files and options that it had alone, and what it had
// made is named when it is removed.
func TestResumeRefused(t *testing.T) {
	act := resumeActs()["words"]
	stopped := func() *vfs.MemFS {
		fs, ops := act.store(t), 0
		if _, err := act.run(t.Context(), killed(fs, 60, &ops), false); err == nil {
			t.Fatal("the commit was not stopped")
		}
		return fs
	}
	fails := func(fs vfs.FS, want string) {
		t.Helper()
		_, err := act.run(t.Context(), fs, true)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fails(act.store(t), "no commit to s was stopped: its last is snapshot 0")
	fs := stopped()
	writeText(t, fs, "more.csv", "src,dst\nb,a\n")
	fails(fs, "[more.csv], or changed since")
	fails(fs, "[more.csv], or changed since") // it was left
	fs = stopped()
	act.opt.SrcCol = "src"
	fails(fs, "the options are others")
	act.opt.SrcCol = ""
	notes := &strings.Builder{}
	act.opt.Notes = notes
	if _, err := act.run(t.Context(), fs, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes.String(), "a commit of more.csv was stopped before") {
		t.Errorf("notes %q", notes)
	}
	act.opt.Notes = nil
	fails(fs, "its last is snapshot 1")
}

// TestResumeStopped: what a commit made stays when it is stopped, and goes on.
func TestResumeStopped(t *testing.T) {
	act := resumeActs()["words"]
	fs := act.store(t)
	ctx, stop := context.WithCancel(t.Context())
	act.opt.Progress = func(phase string, _, _ int64, _ string) {
		if strings.HasPrefix(phase, "write in") {
			stop()
		}
	}
	_, err := act.run(ctx, fs, false)
	if !errors.Is(err, ErrStopped) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want that it was stopped", err)
	}
	act.opt.Progress = nil
	added, err := act.run(t.Context(), fs, true)
	if err != nil || added.Edges != 3 || added.Nodes != 2 {
		t.Errorf("%+v, %v", added, err)
	}
	if s := fmt.Sprint(levelFiles(t, fs)); !strings.Contains(s, "s/levels/1/topology/in") {
		t.Errorf("levels have the files %.200s", s)
	}
}
