package train

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gdb/internal/files"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// onDisk builds the planted graph in a directory of the disk.
func onDisk(t *testing.T) *layout.Store {
	t.Helper()
	return layouttest.Build(t, vfs.Default, filepath.Join(t.TempDir(), "store"), planted(false))
}

// TestRunsAtOnce starts runs without a name at the same time: each gets one of its own.
func TestRunsAtOnce(t *testing.T) {
	const runs = 4
	s, c := onDisk(t), testConfig()
	c.Run, c.Epochs = "", 1
	names := make(chan string, runs)
	for range runs {
		go func() {
			res, err := Run(t.Context(), s, mustDevice(t), c, nil)
			if err != nil {
				names <- err.Error()
				return
			}
			names <- res.Run
		}()
	}
	seen := map[string]bool{}
	for range runs {
		seen[<-names] = true
	}
	for _, name := range []string{"r0001", "r0002", "r0003", "r0004"} {
		if !seen[name] {
			t.Errorf("the runs were %v, want one called %s", seen, name)
		}
	}
}

// TestNameTakenMeanwhile: who comes second to a name, while it is trained or after, gets another.
func TestNameTakenMeanwhile(t *testing.T) {
	s, c := onDisk(t), testConfig()
	r, lock, err := runs.CreateNext(s)
	if err != nil || r.Name() != "r0001" {
		t.Fatal(r.Name(), err)
	}
	if _, err := runs.Open(s, "r0001").Create(); !errors.Is(err, runs.ErrTaken) {
		t.Errorf("a name whose run is being trained: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	c.Run, c.Epochs = "r0001", 1
	mustRun(t, s, c)
	if _, err := runs.Open(s, "r0001").Create(); !errors.Is(err, runs.ErrTaken) {
		t.Errorf("a name whose run is done: %v", err)
	}
	if _, err := Run(t.Context(), s, mustDevice(t), c, nil); !errors.Is(err, runs.ErrTaken) {
		t.Errorf("trained again: %v", err)
	}
}

// TestMissingCurrent: the newest checkpoint that is whole is taken, with a word.
func TestMissingCurrent(t *testing.T) {
	c := resumeConfig()
	want, weights := undisturbed(t, c)
	s := mustBuild(t, planted(false))
	c.Epochs--
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	if err := s.FS().Remove(dir.Path(runs.CurrentName)); err != nil {
		t.Fatal(err)
	}
	if err := s.FS().MkdirAll(dir.Path("checkpoint-99"), 0o755); err != nil { // of a killed process
		t.Fatal(err)
	}
	var notes []string
	_, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run,
		Limits: Limits{Notes: func(note string) { notes = append(notes, note) }}})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "has no CURRENT") {
		t.Errorf("evaluated: %v, with notes %q", err, notes)
	}
	c.Epochs++
	c.Resume = c.Run
	note := ""
	_, err = Run(t.Context(), s, mustDevice(t), c, func(e run.Event) {
		if e.Started != nil {
			note = e.Started.Note
		}
	})
	if err != nil || !strings.Contains(note, "has no CURRENT") {
		t.Errorf("resumed: %v, with note %q", err, note)
	}
	checkFinal(t, s, c, want, weights)
}

// TestAbsurdSizes makes files of a run 1 TiB long, of which the disk holds nothing: they are
// damage,
// and take no memory.
func TestAbsurdSizes(t *testing.T) {
	s, c := onDisk(t), testConfig()
	c.Epochs = 2
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	current, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	c.Resume, c.Epochs = c.Run, 3
	for _, name := range []string{runs.FileName, runs.MetricsName, current + "/" + runs.StateName,
		runs.CurrentName} {
		path := dir.Path(name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<40); err != nil {
			t.Skipf("no sparse file of 1 TiB here: %v", err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		damaged := name != runs.CurrentName // without that the newest checkpoint is taken
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); damaged != errors.Is(err,
			layout.ErrCorrupt) || !damaged && err != nil {
			t.Errorf("resumed with %s of 1 TiB: %v", name, err)
		}
		_, err = Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: c.Run})
		if damaged && name != runs.MetricsName && !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("evaluated with %s of 1 TiB: %v, want damage", name, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("with %s of 1 TiB %d bytes were allocated", name, took)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinksOfRuns: a link in place of a run, or of a file of one, is not followed.
func TestLinksOfRuns(t *testing.T) {
	s, c := onDisk(t), testConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	if err := os.Symlink(c.Run, s.Path("runs", "link")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if err := os.Symlink(t.TempDir(), s.Path("runs", "away")); err != nil {
		t.Fatal(err)
	}
	eval := func(run string) error {
		_, err := Evaluate(t.Context(), s, mustDevice(t), EvalConfig{Run: run})
		return err
	}
	train := c
	train.Run = "away"
	_, err := Run(t.Context(), s, mustDevice(t), train, nil)
	for what, err := range map[string]error{"a linked run": eval("link"), "into a link": err} {
		if !errors.Is(err, files.ErrRefused) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
	path := dir.Path(runs.FileName)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	if err := eval(c.Run); !errors.Is(err, files.ErrRefused) {
		t.Errorf("a linked run.json: %v, want it refused", err)
	}
}
