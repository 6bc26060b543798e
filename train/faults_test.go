package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileKinds are the kinds of files that a training meets. The splits are in the catalog; a whole
// superbatch is the directory of its files.
var fileKinds = []string{"topology", "features", "labels", "catalog", "superbatch",
	"superbatch.batches", "superbatch.accesses", "superbatch.next", "superbatch.plan",
	"neighbor cache", "checkpoint", "CURRENT", "metrics.jsonl", "run.json"}

// stops are how many steps a run made before the trial, which resumes it; 0 is a new run.
var stops = []int{0, 3, 8}

// faultConfig is a training that meets all kinds of files.
func faultConfig() Config {
	c := beladyConfig()
	c.Epochs, c.Superbatch, c.CheckpointEvery, c.Batch = 2, 5, 3, 40
	c.Topology, c.NeighborCache = "paged", 64<<10
	return c
}

// faultWorld is where fault trials take place: a store in memory, or on a disk that a device of the
// operating system reads.
type faultWorld struct {
	t     *testing.T
	draw  *rand.Rand
	io    blockdev.Backend
	seen  []map[place]int // operations in a trial without a fault, for each of stops
	state string          // what it came to
}

// disk builds a store.
func (w *faultWorld) disk() (*sickDisk, string) {
	fs, dir := vfs.FS(vfs.NewMem()), "store"
	if w.io != blockdev.Memory {
		fs, dir = vfs.Default, path.Join(w.t.TempDir(), "store")
	}
	s := layouttest.Build(w.t, fs, dir, planted(false))
	dev, err := blockdev.Open(blockdev.Options{Backend: w.io})
	if err != nil {
		w.t.Fatal(err)
	}
	noteProfileOf(w.t, dev, s, faultConfig(), diskProfile)
	if err := dev.Close(); err != nil {
		w.t.Fatal(err)
	}
	return newSickDisk(fs), dir
}

// train opens the store and trains until the end, or until a number of steps were done.
func (w *faultWorld) train(d *sickDisk, dir string, c Config, steps int) error {
	dev, err := blockdev.Open(blockdev.Options{Backend: w.io, QueueDepth: 4})
	if err != nil {
		return err
	}
	if w.io != blockdev.Memory { // else the file system does its reads
		dev = d.device(dev)
	}
	s, err := layout.Open(context.Background(), d, dir)
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		_, err = Run(ctx, s, dev, c, func(e run.Event) {
			if e.Progress != nil {
				if steps--; steps == 0 {
					cancel()
				}
			}
		})
		cancel()
	}
	return errors.Join(err, dev.Close())
}

// resume goes on with the run, or begins it if it did not begin.
func (w *faultWorld) resume(d *sickDisk, dir string, c Config) error {
	if _, err := d.FS.Stat(path.Join(dir, "runs", c.Run, "run.json")); err == nil {
		c.Resume = c.Run
	}
	return w.train(d, dir, c, 0)
}

// outcome is what the run came to, read from the sound disk.
func (w *faultWorld) outcome(d *sickDisk, dir string, c Config) string {
	w.t.Helper()
	s, err := layout.Open(context.Background(), d.FS, dir)
	if err != nil {
		w.t.Fatal(err)
	}
	checkPrep(w.t, s)
	p, arrays := finalState(w.t, s, c.Run)
	log, err := readAll(s.FS(), s.Path("runs", c.Run, "metrics.jsonl"))
	if err != nil || bytes.Count(log, []byte("\n")) != c.Epochs {
		w.t.Errorf("metrics.jsonl has %d records of %d, %v", bytes.Count(log, []byte("\n")),
			c.Epochs, err)
	}
	runs, err := s.Catalog().Runs(context.Background())
	if err != nil || len(runs) != 1 || runs[0].Status != "done" {
		w.t.Errorf("the catalog has %+v, %v", runs, err)
	}
	return fmt.Sprintf("%x best %v in epoch %d, test %v", arrays, p.Best, p.BestEpoch, *p.Test)
}

func newFaultWorld(t *testing.T, io blockdev.Backend, draw *rand.Rand) *faultWorld {
	w := &faultWorld{t: t, draw: draw, io: io}
	d, dir := w.disk()
	c := faultConfig()
	if err := w.train(d, dir, c, 0); err != nil {
		t.Fatal(err)
	}
	w.state = w.outcome(d, dir, c)
	for _, stop := range stops {
		w.seen = append(w.seen, w.trial(place{}, 0, stop).seen)
	}
	return w
}

// trial lets a disease break out at some place, in a new run or in one that is resumed after some
// steps, and goes on when the disk is sound.
func (w *faultWorld) trial(at place, nth, stop int) *sickDisk {
	t, c := w.t, faultConfig()
	d, dir := w.disk()
	before := runtime.NumGoroutine()
	if stop > 0 {
		if err := w.train(d, dir, c, stop); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d steps: %v", stop, err)
		}
		d = newSickDisk(d.FS)
	}
	d.at, d.nth = at, nth
	if err := w.resume(d, dir, c); err != nil {
		w.checkError(err, d)
	}
	if left := d.left(); len(left) > 0 {
		t.Errorf("left open: %s", left)
	}
	devtest.CheckGoroutines(t, before)
	if err := w.resume(newSickDisk(d.FS), dir, c); err != nil {
		t.Fatalf("on the sound disk: %v", err)
	}
	if w.outcome(d, dir, c) != w.state {
		t.Error("other weights")
	}
	return d
}

// checkError looks at what a user is told: the file, the offset of a read, the cause.
func (w *faultWorld) checkError(err error, d *sickDisk) {
	w.t.Helper()
	text, name := err.Error(), strings.TrimSuffix(path.Base(d.name), ".tmp")
	if d.op == "" {
		w.t.Errorf("failed without a fault: %v", err)
		return
	}
	switch {
	case d.at.what == fullDisk:
		name = "store/" // whichever meets the full disk first
	case d.at.kind == "catalog":
		name = "catalog" // the names of its files tell a user nothing
	}
	if !strings.Contains(text, name) {
		w.t.Errorf("%s %s: the file is not named: %v", d.op, d.name, err)
	}
	if d.off >= 0 && d.at.kind != "catalog" && !strings.Contains(text, "offset") {
		w.t.Errorf("%s %s at offset %d is not named: %v", d.op, d.name, d.off, err)
	}
	cause := map[disease]error{oneError: syscall.EIO, fullDisk: syscall.ENOSPC}[d.at.what]
	if cause != nil && !errors.Is(err, cause) {
		w.t.Errorf("the cause is lost: %v", err)
	}
	advice := regexp.MustCompile("--resume t|begin again|gdb check|check the disk")
	opening := strings.Contains(text, "layout: open store") // the cause is all there is to say
	if !opening && !advice.MatchString(text) {
		w.t.Errorf("what to do is not said: %v", err)
	}
	if d.at.what == shortRead {
		w.t.Errorf("a short read is an error: %v", err)
	}
}

// TestFaultsAtAllFiles lets a sick disk fail runs at places drawn by a seed: a run ends with an
// error that names the file, leaves nothing open and nothing torn, and goes on from there once the
// disk is sound, to the weights of a run that was never disturbed. Each fifth disk is one of the
// operating system. GDB_TEST_TRIALS=1000 is for a longer run.
func TestFaultsAtAllFiles(t *testing.T) {
	usual := 28
	if testing.Short() {
		usual = 14
	}
	trials, draw := newTrials(t, usual)
	w := newFaultWorld(t, blockdev.Memory, draw)
	met := 0
	for i := range trials {
		at, stop := place{kind: fileKinds[i%len(fileKinds)]}, 0
		for tries := 0; w.seen[stop][at] == 0; tries++ {
			if tries > 1000 {
				t.Fatalf("no operation on %s", at.kind)
			}
			at.what, stop = diseases[draw.IntN(len(diseases))], draw.IntN(len(stops))
		}
		nth := draw.IntN(w.seen[stop][at])
		t.Run(strings.ReplaceAll(at.kind, " ", "-"), func(t *testing.T) {
			one := *w
			one.t = t
			if i%5 == 4 {
				one.io = osBackend(t, draw)
			}
			d := one.trial(at, nth, stops[stop])
			if d.op != "" {
				met++
			}
			t.Logf("io=%s, %s at operation %d after %d steps: %s %s", one.io, at.what, nth,
				stops[stop], d.op, d.name)
		})
	}
	if t.Logf("%d of %d faults were met", met, trials); met < trials*3/4 {
		t.Error("most operations were never made")
	}
}

// osBackend draws one of the ways to read files of the operating system, that work here.
func osBackend(t *testing.T, draw *rand.Rand) blockdev.Backend {
	t.Helper()
	all := []blockdev.Backend{blockdev.URing, blockdev.Pread, blockdev.Buffered, blockdev.MMap}
	for {
		b := all[draw.IntN(len(all))]
		dev, err := blockdev.Open(blockdev.Options{Backend: b})
		if err != nil {
			t.Logf("without %s: %v", b, err)
			continue
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
		return b
	}
}

// hiddenFolder is where the test of hidden states keeps them.
const hiddenFolder = "hidden-"

// TestFaultsOfHiddenStates fails each fifth operation (tenth with -short) on the files of hidden
// states, of an inference for which they do not fit in memory: it fails with file and offset,
// leaves no file and nothing open, and is right when the disk is sound.
func TestFaultsOfHiddenStates(t *testing.T) {
	_, draw := newTrials(t, 1)
	d := newSickDisk(vfs.NewMem())
	layouttest.Build(t, d.FS, "store", planted(false))
	c := testConfig()
	c.Epochs = 1
	s, err := layout.Open(t.Context(), d, "store")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, s, c)
	d.seen = map[place]int{}
	want, err := inferFromFiles(t, s)
	if err != nil {
		t.Fatal(err)
	}
	seen, tried, each := d.seen, 0, 5
	if testing.Short() {
		each = 10
	}
	for _, what := range diseases {
		d.at = place{"hidden states", what}
		for d.nth = draw.IntN(each); d.nth < seen[d.at]; d.nth += each {
			tried++
			d.seen, d.op, d.ill = map[place]int{}, "", false
			got, err := inferFromFiles(t, s)
			d.ill = false
			if err == nil && got != want {
				t.Errorf("%s of %s %s: other predictions", what, d.op, d.name)
			}
			if err != nil {
				checkHiddenError(t, d, err)
			}
			if left := d.left(); len(left) > 0 {
				t.Errorf("%s of %s %s: left open: %s", what, d.op, d.name, left)
			}
			left, err := d.FS.List(s.Path("runs", "t", hiddenFolder+"x"))
			if err == nil && !strings.HasPrefix(d.op, "remove") {
				t.Errorf("%s of %s %s: left behind: %s", what, d.op, d.name, left)
			}
			d.at.kind = ""
			if got, err := inferFromFiles(t, s); err != nil || got != want {
				t.Errorf("after %s of %s %s: %v", what, d.op, d.name, err)
			}
			d.at.kind = "hidden states"
		}
	}
	if t.Logf("%d faults", tried); tried < 200/each {
		t.Error("the files were hardly used")
	}
}

func checkHiddenError(t *testing.T, d *sickDisk, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), hiddenFolder+"x") ||
		d.off >= 0 && !strings.Contains(err.Error(), "offset") {
		t.Errorf("%s of %s %s: no file or offset is named: %v", d.at.what, d.op, d.name, err)
	}
	if d.at.what == shortRead {
		t.Errorf("a short read is an error: %v", err)
	}
}

// inferFromFiles predicts all nodes with the hidden states in files.
func inferFromFiles(t *testing.T, s *layout.Store) (string, error) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory, QueueDepth: 4})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := openTrained(t.Context(), s, dev, opening{run: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	f := tr.inference(tr.in, &scratch{in: tr.in, dir: "runs/t/" + hiddenFolder + "x"})
	f.OnDisk, f.RowsMax = true, 70
	err = f.Run(t.Context(), nil, func(nodes []layout.NodeID, y []float32) error {
		fmt.Fprintf(&got, "%v %x\n", nodes, y)
		return nil
	})
	if err := errors.Join(tr.Close(), dev.Close()); err != nil {
		t.Fatal(err)
	}
	return got.String(), err
}
