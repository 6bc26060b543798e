package train

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func resumeConfig() Config {
	c := testConfig()
	c.Epochs, c.Batch = 4, 30
	c.Norm = "batch" // has statistics, which checkpoints keep too
	return c
}

// undisturbed is the state that every interrupted run must end in.
func undisturbed(t *testing.T, c Config) (position, []byte) {
	s := mustBuild(t, planted(false))
	mustRun(t, s, c)
	return finalState(t, s, c.Run)
}

func checkFinal(t *testing.T, s *layout.Store, c Config, want position, weights []byte) {
	t.Helper()
	got, b := finalState(t, s, c.Run)
	if !bytes.Equal(b, weights) {
		t.Error("the weights or the optimizer's state differ from an undisturbed run's")
	}
	if got.Best != want.Best || got.BestEpoch != want.BestEpoch || *got.Test != *want.Test ||
		got.Epoch != want.Epoch || got.Steps != want.Steps {
		t.Errorf("ended at %+v, undisturbed at %+v", got, want)
	}
	log, err := readAll(s.FS(), s.Path("runs", c.Run, "metrics.jsonl"))
	if err != nil || bytes.Count(log, []byte("\n")) != c.Epochs {
		t.Errorf("metrics.jsonl has %d records of %d, %v", bytes.Count(log, []byte("\n")),
			c.Epochs, err)
	}
}

// TestCheckpointsChangeNothing: writing one leaves the weights as they are, the best ones too, also
// where the file changes what is written to it, as those of vfs may, and in builds with invariants
// the one in memory does.
func TestCheckpointsChangeNothing(t *testing.T) {
	c := resumeConfig()
	c.LR = 1e-9 // no epoch is better than the first
	want, weights := undisturbed(t, c)
	for every := range 5 {
		c.CheckpointEvery = every + 1
		s := mustBuild(t, planted(false))
		mustRun(t, s, c)
		checkFinal(t, s, c, want, weights)
	}
}

// TestResumeAfterCancel interrupts a run at random steps, several times, until it is done.
func TestResumeAfterCancel(t *testing.T) {
	c := resumeConfig()
	want, weights := undisturbed(t, c)
	for seed := range stopped() {
		draw := rng.NewStream(rng.Key(seed))
		s, dev := mustBuild(t, planted(false)), mustDevice(t)
		stops := 0
		for next := resumeVariant(c, seed); ; next = resumed(c.Run) {
			ctx, cancel := context.WithCancel(context.Background())
			left := 1 + int(draw.Below(20))
			_, err := Run(ctx, s, dev, next, func(e run.Event) {
				if left--; left == 0 {
					cancel()
				}
			})
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "--resume t") {
				t.Fatal(err)
			}
			stops++
		}
		if stops == 0 {
			t.Error("the run was never interrupted")
		}
		checkFinal(t, s, c, want, weights)
		checkPrep(t, s)
	}
}

// TestStopOnFullDisk: a run that is stopped and cannot save where it stands does not say that it
// goes on from there; it goes on from the checkpoint before.
func TestStopOnFullDisk(t *testing.T) {
	c := resumeConfig()
	c.CheckpointEvery = 3
	want, weights := undisturbed(t, c)
	s := mustBuild(t, planted(false))
	full := false
	fs := errorfs.Wrap(s.FS(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "checkpoint-") {
			return syscall.ENOSPC
		}
		return nil
	}))
	sick, err := layout.Open(t.Context(), fs, "store")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := 5
	_, err = Run(ctx, sick, mustDevice(t), c, func(e run.Event) {
		if e.Progress == nil {
			return
		}
		if left--; left == 0 {
			full = true
			cancel()
		}
	})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "from the checkpoint before") {
		t.Errorf("the error is: %v", err)
	}
	mustRun(t, s, resumed(c.Run))
	checkFinal(t, s, c, want, weights)
}

// stopped is how many runs are stopped at random steps: half of them with superbatches.
func stopped() uint64 {
	if testing.Short() {
		return 2
	}
	return 4
}

// resumeVariant trains on superbatches in every other run: the weights are the same.
func resumeVariant(c Config, seed uint64) Config {
	if seed%2 == 1 {
		c.Cache, c.FeatureCache, c.Superbatch = setting.CacheBelady, 8<<10, int(seed)
	}
	return c
}

// TestResumeAfterCrash takes the disk as a power failure leaves it at random steps, and resumes
// there, in both precisions.
func TestResumeAfterCrash(t *testing.T) {
	for _, precision := range []string{setting.Float32, setting.BFloat16} {
		t.Run(precision, func(t *testing.T) {
			c := resumeConfig()
			c.CheckpointEvery, c.Precision, c.Hidden = 2, precision, 32
			resumeCrashed(t, c)
		})
	}
}

// resumeCrashed crashes runs of such settings.
func resumeCrashed(t *testing.T, c Config) {
	t.Helper()
	want, weights := undisturbed(t, c)
	for seed := range stopped() {
		fs := vfs.NewCrashableMem()
		s := layouttest.Build(t, fs, "store", planted(false))
		noteProfiles(t, s)
		syncTree(t, fs, "")
		draw := rng.NewStream(rng.Key(seed, 1))
		left := 1 + int(draw.Below(30))
		var crashed *vfs.MemFS
		ctx, cancel := context.WithCancel(context.Background())
		begun := resumeVariant(c, seed)
		_, err := Run(ctx, s, mustDevice(t), begun, func(e run.Event) {
			if left--; left == 0 {
				crashed = fs.CrashClone(vfs.CrashCloneCfg{})
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		after, err := layout.Open(context.Background(), crashed, "store")
		if err != nil {
			t.Fatal(err)
		}
		next := begun
		next.Resume = c.Run
		if _, err := Run(context.Background(), after, mustDevice(t), next, nil); err != nil {
			t.Fatalf("crash %d: %v", seed, err)
		}
		checkFinal(t, after, c, want, weights)
		checkPrep(t, after)
	}
}

// syncTree makes the entries of all directories below dir durable, as ingest does.
func syncTree(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	d, err := fs.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		if info, err := fs.Stat(path); err == nil && info.IsDir() {
			syncTree(t, fs, path)
		}
	}
}

func TestResumeKeepsTheRun(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	c := resumeConfig()
	first := mustRun(t, s, c)
	again, err := Run(context.Background(), s, dev, resumed(c.Run), nil)
	if err != nil || *again.Test != *first.Test || again.BestEpoch != first.BestEpoch {
		t.Errorf("a finished run resumed: %v, %v; it was %v", again, err, first)
	}
	other := c
	other.Resume, other.LR = c.Run, 0.5
	if _, err := Run(context.Background(), s, dev, other, nil); err == nil ||
		!strings.Contains(err.Error(), "with lr 0.5: it began with 0.02") {
		t.Errorf("resumed with another learning rate: %v", err)
	}
	more := c
	more.Resume, more.Epochs = c.Run, c.Epochs+2
	if _, err := Run(context.Background(), s, dev, more, nil); err != nil {
		t.Fatal(err)
	}
	long := c
	long.Epochs += 2
	_, weights := undisturbed(t, long)
	if _, got := finalState(t, s, c.Run); !bytes.Equal(got, weights) {
		t.Error("a run of 4 and 2 epochs differs from one of 6")
	}
}

// TestResumeRemovesHiddenStates: what a process left that was killed while it evaluated is removed.
func TestResumeRemovesHiddenStates(t *testing.T) {
	s, c := mustBuild(t, planted(false)), resumeConfig()
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run).Path(hiddenDir)
	if err := s.FS().MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeSynced(s.FS(), s.FS().PathJoin(dir, "states1.rows"), []byte{1}); err != nil {
		t.Fatal(err)
	}
	mustRun(t, s, resumed(c.Run))
	if _, err := s.FS().Stat(dir); !oserror.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

func TestLockedRun(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	var inner error
	_, err := Run(context.Background(), s, dev, resumeConfig(), func(e run.Event) {
		if e.Started != nil {
			_, inner = Run(context.Background(), s, dev, resumed("t"), nil)
		}
	})
	if err != nil || inner == nil || !strings.Contains(inner.Error(), "another process") {
		t.Errorf("outer %v, inner %v", err, inner)
	}
}

// TestDamagedCheckpoint flips bits all over the files that resume reads.
func TestDamagedCheckpoint(t *testing.T) {
	s, dev := mustBuild(t, planted(false)), mustDevice(t)
	c := resumeConfig()
	c.Epochs = 1
	mustRun(t, s, c)
	dir := runs.Open(s, c.Run)
	numbers, err := dir.Checkpoints()
	if err != nil || len(numbers) == 0 {
		t.Fatal(numbers, err)
	}
	current, err := readAll(s.FS(), dir.Path("CURRENT"))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(string(current), " ")
	draw := rng.NewStream(4)
	for _, file := range []string{dir.Path(name, "state"), dir.Path("CURRENT")} {
		good, err := readAll(s.FS(), file)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			bad := bytes.Clone(good)
			at := draw.Below(uint64(len(bad)))
			bad[at] ^= 1 << draw.Below(8)
			if err := writeSynced(s.FS(), file, bad); err != nil {
				t.Fatal(err)
			}
			if _, err := currentCheckpoint(dir); !errors.Is(err, layout.ErrCorrupt) {
				t.Fatalf("%s, bit of byte %d flipped: %v", file, at, err)
			}
		}
		_, err = Run(context.Background(), s, dev, resumed(c.Run), nil)
		isCurrent := file == dir.Path("CURRENT") // the checkpoint that it named is whole
		if isCurrent != (err == nil) || !isCurrent && !errors.Is(err, layout.ErrCorrupt) {
			t.Errorf("resumed from a damaged %s: %v", file, err)
		}
		if err := writeSynced(s.FS(), file, good); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDecodeCheckpoint: a state that is read is written again as it was.
func FuzzDecodeCheckpoint(f *testing.F) {
	store := layouttest.Build(f, vfs.NewMem(), "s", layouttest.Random(1, 10, 20))
	dir := runs.Open(store, "t")
	lock, err := dir.Create()
	if err != nil {
		f.Fatal(err)
	}
	defer lock.Close()
	err = dir.WriteState(position{Position: run.Position{Epoch: 3, HasBest: true}},
		[]array{{Name: "weights", Values: []float32{1, 2, 3}}, {Name: "empty"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	name, err := dir.Current()
	if err != nil {
		f.Fatal(err)
	}
	b, err := readAll(store.FS(), dir.Path(name, runs.StateName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := writeSynced(store.FS(), dir.Path(name, runs.StateName), b); err != nil {
			t.Fatal(err)
		}
		var p, q position
		arrays, err := dir.ReadState(name, 1<<20, &p)
		if err != nil {
			return
		}
		if err := dir.WriteState(p, arrays, nil); err != nil {
			t.Fatal(err)
		}
		again, err := dir.Current()
		if err == nil {
			_, err = dir.ReadState(again, 1<<20, &q)
		}
		if err != nil || q.Epoch != p.Epoch || q.Batch != p.Batch {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}

// TestDamagedRecordAtResume: a line of metrics.jsonl that is no record, of an epoch before the
// checkpoint, is damage, and the file stays as it is; a line that was torn after it is not.
func TestDamagedRecordAtResume(t *testing.T) {
	c := resumeConfig()
	want, weights := undisturbed(t, c)
	first := c
	first.Epochs = 2
	for name, change := range map[string]func(lines [][]byte) [][]byte{
		"sound": func(lines [][]byte) [][]byte { return lines },
		"torn after": func(lines [][]byte) [][]byte {
			return append(lines, []byte("\x00\x00}\n"), []byte(`{"epoch":3,"lo`))
		},
		"first line": func(lines [][]byte) [][]byte {
			lines[0][1] ^= 1
			return lines
		},
		"last line": func(lines [][]byte) [][]byte {
			return append(lines[:1], lines[1][:len(lines[1])/2])
		},
	} {
		s := mustBuild(t, planted(false))
		mustRun(t, s, first)
		path := s.Path("runs", c.Run, "metrics.jsonl")
		log, err := readAll(s.FS(), path)
		if err != nil {
			t.Fatal(err)
		}
		log = bytes.Join(change(bytes.SplitAfter(log, []byte("\n"))[:first.Epochs]), nil)
		if err := writeSynced(s.FS(), path, bytes.Clone(log)); err != nil { // which may change it
			t.Fatal(err)
		}
		resumed, err := runs.Load(s, c.Run)
		if err != nil {
			t.Fatal(err)
		}
		resumed.Epochs, resumed.Resume = c.Epochs, c.Run
		_, err = Run(t.Context(), s, mustDevice(t), resumed, nil)
		if name == "sound" || name == "torn after" {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkFinal(t, s, c, want, weights)
			continue
		}
		line := map[string]string{"first line": "line 1: ", "last line": "line 2: "}[name]
		if !errors.Is(err, layout.ErrCorrupt) ||
			!strings.Contains(err.Error(), "runs/"+c.Run+"/metrics.jsonl: "+line) {
			t.Errorf("%s: %v, want damage of its %s", name, err, line)
		}
		if now, err := readAll(s.FS(), path); err != nil || !bytes.Equal(now, log) {
			t.Errorf("%s: the file changed: %v", name, err)
		}
	}
}

// TestFormerCache: a run that began with a cache that trainings no longer have goes on with sieve,
// says so, and ends as it would have; settings that name such a cache are refused.
func TestFormerCache(t *testing.T) {
	c := resumeConfig()
	want, weights := undisturbed(t, c)
	s := mustBuild(t, planted(false))
	first := c
	first.Epochs, first.FeatureCache = 2, 8<<10
	mustRun(t, s, first)
	dir := runs.Open(s, c.Run)
	file, err := dir.ReadFile()
	if err != nil {
		t.Fatal(err)
	}
	file.Config.Cache = "s3fifo"
	if err := dir.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	again, err := runs.Load(s, c.Run)
	if err != nil || again.Cache != setting.CacheSIEVE {
		t.Fatalf("the run is loaded with cache %q, %v", again.Cache, err)
	}
	again.Resume, again.Epochs = c.Run, c.Epochs
	note, cache := "", ""
	if _, err := Run(t.Context(), s, mustDevice(t), again, func(e run.Event) {
		if e.Started != nil {
			note, cache = e.Started.Note, e.Started.Of.(*Begun).Plan.Cache
		}
	}); err != nil {
		t.Fatal(err)
	}
	if cache != setting.CacheSIEVE ||
		!strings.Contains(note, "began with cache s3fifo and goes on with sieve") {
		t.Errorf("it goes on with cache %s, and says %q", cache, note)
	}
	checkFinal(t, s, c, want, weights)
	refuseFormer(t, s, c)
}

// refuseFormer starts runs with caches that trainings no longer have.
func refuseFormer(t *testing.T, s *layout.Store, c Config) {
	t.Helper()
	for _, cache := range []string{"lru", "clock", "s3fifo"} {
		c.Cache = cache
		want := "cache " + cache + ": trainings keep rows by static, sieve or belady"
		if _, err := Run(t.Context(), s, mustDevice(t), c, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
