package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/inspect"
	"gdb/train"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// csvGraph writes a graph with string ids as text and returns the arguments that ingest it.
func csvGraph(t *testing.T, dir string, nodes, edges int) []string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var e, n strings.Builder
	e.WriteString("src,dst\n")
	for range edges {
		fmt.Fprintf(&e, "n%d,n%d\n", r.IntN(nodes), r.IntN(nodes))
	}
	n.WriteString("id,label,f0,f1,f2,f3\n")
	var splits [3]strings.Builder
	for i := range nodes {
		c := i % 3
		fmt.Fprintf(&n, "n%d,c%d,%.3f,%.3f,%.3f,%.3f\n", i, c, r.Float64()+float64(c),
			r.Float64(), r.Float64(), r.Float64())
		fmt.Fprintf(&splits[r.IntN(3)], "n%d\n", i)
	}
	args := []string{"ingest", "--label-col", "label", "--feature-cols", "f0:f3"}
	write := func(flag, name, text string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, flag+path)
	}
	write("--edges=", "edges.csv", e.String())
	write("--nodes=", "nodes.csv", n.String())
	for i, name := range []string{"train", "val", "test"} {
		write("--split="+name+"=", name+".csv", splits[i].String())
	}
	return args
}

// checkStore opens and checks a store; what is wrong is what gdb check prints.
func checkStore(t *testing.T, dev blockdev.Device, dir string) string {
	t.Helper()
	st, err := layout.Open(t.Context(), vfs.Default, dir)
	if err != nil {
		return err.Error()
	}
	report, err := inspect.Check(t.Context(), dev, st, inspect.CheckOptions{})
	if err != nil {
		return err.Error()
	}
	if len(report.Findings) == 0 {
		return ""
	}
	var out strings.Builder
	a := &app{cli.App{Streams: cli.Streams{Out: &out}}}
	if err := a.printFindings(dir, report, true); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// namesPlace reports whether a message names the file, and the block that holds the damaged byte by
// its number and offset. The catalog's files are Pebble's and the seal: they have no blocks of
// ours, and a digest of each whole file.
func namesPlace(what, name string, at int) bool {
	if strings.HasPrefix(name, "catalog") {
		return strings.Contains(what, name) || strings.Contains(what, filepath.Base(name))
	}
	place := regexp.MustCompile(regexp.QuoteMeta(name) + ` block (\d+) at offset (\d+)`)
	for _, m := range place.FindAllStringSubmatch(what, -1) {
		block, _ := strconv.Atoi(m[1])
		offset, _ := strconv.Atoi(m[2])
		// All blocks and pages of this store have 4 KiB, the header's block included; for rows, the
		// offset is where the unit of 512 bytes begins.
		if offset/4096 == block && offset <= at && at/4096 == block {
			return true
		}
	}
	return false
}

// trainOutcome trains one epoch, everything read from disk, and says what came of it.
func trainOutcome(t *testing.T, dev blockdev.Device, dir string) (string, error) {
	t.Helper()
	defer os.RemoveAll(filepath.Join(dir, "runs"))
	st, err := layout.Open(t.Context(), vfs.Default, dir)
	if err != nil {
		return "", err
	}
	c := setting.Default()
	c.Fanout, c.Hidden, c.Batch, c.Epochs, c.Threads = []int{3, 3}, 8, 512, 1, 1
	c.Memory, c.Topology, c.Cache = 1<<30, "paged", "none"
	loss := 0.0
	res, err := train.Run(t.Context(), st, dev, c, func(e run.Event) {
		if e.Epoch != nil {
			loss = e.Epoch.(*runs.Epoch).Loss
		}
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("loss %v best %v test %v", loss, res.Best, *res.Test), nil
}

// storeFiles lists the files of a store that hold something.
func storeFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFlippedBit flips one bit at a time, all over a store: the check finds each and names the
// file, and training fails saying where, or ends as it does on the sound store.
func TestFlippedBit(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 100 copies of a store")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "g.gdb")
	args := append(csvGraph(t, dir, 3000, 20000), "--out", store)
	if code := execute(t.Context(), args, cli.Streams{In: os.Stdin, Out: t.Output(),
		Err: t.Output()}); code != 0 {
		t.Fatalf("ingest: exit code %d", code)
	}
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Pread})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if what := checkStore(t, dev, store); what != "" {
		t.Fatalf("the sound store: %s", what)
	}
	want, err := trainOutcome(t, dev, store)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	files := storeFiles(t, store)
	refused := 0
	for i := range 100 {
		path := files[i%len(files)]
		if flipAndTry(t, r, dev, store, path, want, i%5 == 0) {
			refused++
		}
	}
	t.Logf("%d files; training refused %d of 20 damaged stores", len(files), refused)
}

// flipAndTry damages one bit of a file in a copy of the store and looks
// at it. It reports whether training was refused.
func flipAndTry(t *testing.T, r *rand.Rand, dev blockdev.Device, sound, path, want string,
	withTraining bool) bool {
	t.Helper()
	name, err := filepath.Rel(sound, path)
	if err != nil {
		t.Fatal(err)
	}
	// Training notes its run in the catalog, so that each damage gets a copy of its own.
	store := filepath.Join(t.TempDir(), "g.gdb")
	defer os.RemoveAll(store)
	if err := os.CopyFS(store, os.DirFS(sound)); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(store, name)
	bad, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at, bit := r.IntN(len(bad)), r.IntN(8)
	bad[at] ^= 1 << bit
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	where := fmt.Sprintf("bit %d of byte %d of %s", bit, at, name)
	what := checkStore(t, dev, store)
	if what == "" {
		t.Errorf("%s: the check found nothing", where)
	} else if !namesPlace(what, name, at) {
		t.Errorf("%s: the check does not name the place: %s", where, what)
	}
	if !withTraining {
		return false
	}
	got, err := trainOutcome(t, dev, store)
	switch {
	case err == nil && got != want:
		t.Errorf("%s: training differs without a word: %s, want %s", where, got, want)
	case err != nil && !errors.Is(err, layout.ErrCorrupt) && !errors.Is(err, kv.ErrDamaged):
		t.Errorf("%s: training: not an error of damage: %v", where, err)
	case err != nil && !namesPlace(err.Error(), name, at):
		t.Errorf("%s: training does not name the place: %v", where, err)
	}
	return err != nil
}
