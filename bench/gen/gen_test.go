package gen

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func genOptions(kind string, fs vfs.FS) Options {
	return Options{Kind: kind, Nodes: 1 << 12, Edges: 40_000, Dim: 3, Classes: 5, TrainFrac: 0.1,
		Seed: 1, Out: "out", FS: fs}
}

// mustFiles reads a directory.
func mustFiles(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		all[name] = string(b)
	}
	return all
}

// TestGen: the sizes asked for, degrees as they are said to be, the same bytes for the same seed.
func TestGen(t *testing.T) {
	for _, kind := range []string{"rmat", "sbm"} {
		fs, o := vfs.NewMem(), genOptions(kind, nil)
		o.FS = fs
		made, err := Make(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		edges := mustArray[uint32](t, fs, "out/edges.npy")
		if made.Nodes != o.Nodes || int(made.Edges) != len(edges)/2 {
			t.Errorf("%s: %+v, and %d edges", kind, made, len(edges)/2)
		}
		if off := float64(made.Edges)/float64(o.Edges) - 1; kind == "rmat" && off != 0 ||
			off < -0.1 || off > 0.1 {
			t.Errorf("%s: %d edges, asked for %d", kind, made.Edges, o.Edges)
		}
		in := make([]int, o.Nodes)
		for i := 1; i < len(edges); i += 2 {
			in[edges[i]]++
		}
		for _, v := range mustArray[int64](t, fs, "out/train_idx.npy") {
			if in[v] == 0 {
				t.Errorf("%s: node %d trains without in-edges", kind, v)
			}
		}
		// A power law has most of its edges at few nodes, the block model has not.
		slices.Sort(in)
		top := 0
		for _, n := range in[len(in)*99/100:] {
			top += n
		}
		if share := float64(top) / float64(made.Edges); (share > 0.2) != (kind == "rmat") {
			t.Errorf("%s: %.2f of the edges end at a hundredth of the nodes", kind, share)
		}
		again, other := o, o
		again.Out, other.Out, other.Seed = "again", "other", 2
		for _, o := range []Options{again, other} {
			if _, err := Make(context.Background(), o); err != nil {
				t.Fatal(err)
			}
		}
		first, second := mustFiles(t, fs, "out"), mustFiles(t, fs, "again")
		for name, b := range first {
			if second[name] != b {
				t.Errorf("%s: %s differs", kind, name)
			}
		}
		if mustFiles(t, fs, "other")["edges.npy"] == first["edges.npy"] {
			t.Errorf("%s: another seed gives the same edges", kind)
		}
	}
}

// TestGenIsWholeOrNotThere: what fails leaves nothing, and what a killed process left goes.
func TestGenIsWholeOrNotThere(t *testing.T) {
	mem, ctx, diskFull := vfs.NewMem(), context.Background(), errors.New("disk full")
	full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, "labels.npy") {
			return diskFull
		}
		return nil
	}))
	if _, err := Make(ctx, genOptions("rmat", full)); !errors.Is(err, diskFull) {
		t.Errorf("error %v", err)
	}
	if names, _ := mem.List(""); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := Make(stopped, genOptions("sbm", mem)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := mem.MkdirAll("out"+partSuffix+"/old", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mem.MkdirAll("out", 0o755); err != nil { // empty
		t.Fatal(err)
	}
	if _, err := Make(ctx, genOptions("sbm", mem)); err != nil {
		t.Fatal(err)
	}
	if names, _ := mem.List(""); !slices.Equal(names, []string{"out"}) {
		t.Errorf("left %v", names)
	}
	if _, err := Make(ctx, genOptions("rmat", mem)); err == nil ||
		!strings.Contains(err.Error(), "out is there, and not empty") {
		t.Errorf("error %v", err)
	}
}

func TestGenRefuses(t *testing.T) {
	good := genOptions("sbm", nil)
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(o *Options){
		"want rmat, sbm, typed or kron": func(o *Options) { o.Kind = "er" },
		"want 2 to 2^32":                func(o *Options) { o.Nodes = 1 },
		"want a power of two":           func(o *Options) { o.Kind, o.Nodes = "rmat", 1000 },
		"no --edges":                    func(o *Options) { o.Edges = 0 },
		"at least one a node":           func(o *Options) { o.Edges = 100 },
		"0 classes":                     func(o *Options) { o.Classes = 0 },
		"--train-frac 0.7":              func(o *Options) { o.TrainFrac = 0.7 },
		"--dim -1 is negative":          func(o *Options) { o.Dim = -1 },
		"bench: gen: no --out D":        func(o *Options) { o.Out = "" },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
