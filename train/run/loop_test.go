package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// batches is how many batches an epoch of a job has.
const batches = 3

// job learns a number: each batch adds to it, and a checkpoint keeps it.
type job struct {
	*run.Loop
	spec   run.Spec
	at     position
	vals   []float64 // of the evaluations
	losses []float64 // of the epochs; 1 if there are no more
	stop   func()    // after stopAt batches
	stopAt int
	fails  error // of the first step

	taken []string // what was done, in order
	best  int
}

// position is a position with what the job learns.
type position struct {
	run.Position
	Learned int `json:"learned"`
}

func newJob(s *layout.Store, resume string) *job {
	return newWatched(s, resume, nil)
}

// newWatched returns a job that is observed.
func newWatched(s *layout.Store, resume string, observer func(run.Event)) *job {
	j := &job{Loop: run.New(s, resume, observer)}
	j.spec = run.Spec{Schedule: setting.Schedule{Epochs: 4, EvalEvery: 1},
		Better: func(a, b float64) bool { return a > b }, At: &j.at.Position,
		Open: func(context.Context) (run.Session, error) { return j, nil }}
	return j
}

// run takes the job through its life.
func (j *job) run(ctx context.Context) error {
	return j.Run(ctx, func() (run.Spec, error) { return j.spec, nil })
}

func (j *job) Begin(context.Context) error    { j.at.Learned = 100; return nil }
func (j *job) Restored(context.Context) error { return nil }
func (j *job) Tell(r *kv.RunMeta)             { r.Model = "sum" }

// sums says that sums are learned.
type sums struct{}

func (sums) Lines(bool) []string { return []string{"sums"} }

func (j *job) Begun() run.Begun {
	j.taken = append(j.taken, "started")
	return sums{}
}

func (j *job) WriteRun() error {
	return j.Dir.WriteFile(runs.File{Store: j.Dir.UUID().String(), Created: j.Created})
}

func (j *job) Restore(checkpoint string) error {
	_, err := j.Dir.ReadState(checkpoint, 1<<20, &j.at)
	return err
}

func (j *job) WriteState() error {
	j.taken = append(j.taken, fmt.Sprintf("checkpoint %d.%d", j.at.Epoch, j.at.Batch))
	return j.Dir.WriteState(&j.at, nil, nil)
}

func (j *job) Steps(ctx context.Context) error {
	for j.at.Batch < batches {
		if err := errors.Join(ctx.Err(), j.fails); err != nil {
			return err
		}
		j.at.Learned++
		j.at.Batch++
		j.Stepped(batches)
		if j.stopAt--; j.stopAt == 0 {
			j.stop()
		}
	}
	return nil
}

func (j *job) FinishEpoch(context.Context) (runs.Record, error) {
	epoch, loss := int(j.at.Epoch)+1, 1.0
	if epoch <= len(j.losses) {
		loss = j.losses[epoch-1]
	}
	if j.Evaluates(epoch) {
		v := 0.0
		if epoch <= len(j.vals) {
			v = j.vals[epoch-1]
		}
		if j.Improves(v, epoch) {
			j.best = j.at.Learned
		}
	}
	j.at.Epoch, j.at.Batch = j.at.Epoch+1, 0
	return &runs.Epoch{Epoch: epoch, Loss: loss}, nil
}

func (j *job) Test(context.Context) error {
	j.taken = append(j.taken, "tested")
	return nil
}

func mustStore(t *testing.T) *layout.Store {
	t.Helper()
	return layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 10, 20))
}

// status is what the catalog says of a run.
func status(t *testing.T, s *layout.Store, name string) kv.RunMeta {
	t.Helper()
	all, err := s.Catalog().Runs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("the catalog has no run %q", name)
	return kv.RunMeta{}
}

// TestRunToItsEnd: a run claims the next name, goes through all epochs, is tested once and noted as
// done; resumed, it has nothing left to do.
func TestRunToItsEnd(t *testing.T) {
	s := mustStore(t)
	j := newJob(s, "")
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"started", "tested", "checkpoint 4.0"}
	if !slices.Equal(j.taken, want) || j.at.Learned != 100+4*batches || !j.at.Done {
		t.Errorf("%v, learned %d, done %v; want %v", j.taken, j.at.Learned, j.at.Done, want)
	}
	if r := status(t, s, "r0001"); r.Status != "done" || r.Epochs != 4 || r.Model != "sum" {
		t.Errorf("the catalog has %+v", r)
	}
	again := newJob(s, "r0001")
	if err := again.run(t.Context()); err != nil || len(again.taken) != 0 ||
		again.at.Learned != j.at.Learned {
		t.Errorf("resumed, it did %v and has %d: %v", again.taken, again.at.Learned, err)
	}
	more := newJob(s, "r0001")
	more.spec.Schedule.Epochs = 6
	if err := more.run(t.Context()); err != nil || more.at.Learned != 100+6*batches {
		t.Errorf("with more epochs it has %d: %v", more.at.Learned, err)
	}
}

// TestObserver: who watches a run that goes on is told where it begins, each step, and the record
// of each epoch once it is written.
func TestObserver(t *testing.T) {
	s := mustStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := newJob(s, "")
	first.stop, first.stopAt = cancel, 2*batches+1
	if err := first.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var told []string
	j := newWatched(s, "r0001", func(e run.Event) {
		switch {
		case e.Started != nil:
			b := e.Started
			told = append(told, fmt.Sprintf("%s %v at %d.%d, %v: %s", b.Run, b.Resumed, b.Epoch,
				b.Batch, b.Of.Lines(false), b.Note))
		case e.Progress != nil:
			p := e.Progress
			told = append(told, fmt.Sprintf("%d.%d of %d", p.Epoch, p.Batch, p.Batches))
		case e.Epoch != nil:
			told = append(told, fmt.Sprintf("epoch %d", e.Epoch.Ordinal()))
		}
	})
	j.Note("a note")
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"r0001 true at 3.1, [sums]: a note", "3.2 of 3", "3.3 of 3", "epoch 3",
		"4.1 of 3", "4.2 of 3", "4.3 of 3", "epoch 4"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	n := 0
	if err := j.Dir.Epochs(func(e *runs.Epoch) error {
		if n++; e.Epoch != n {
			t.Errorf("record %d is of epoch %d", n, e.Epoch)
		}
		return nil
	}); err != nil || n != 4 {
		t.Errorf("%d records: %v", n, err)
	}
}

// TestStoppedAndResumed: whenever it is stopped, a run that is resumed learns what one that was
// never stopped does, and an interruption is an error that names the run.
func TestStoppedAndResumed(t *testing.T) {
	for at := 1; at <= 3*batches; at++ {
		s := mustStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		j := newJob(s, "")
		j.stop, j.stopAt = cancel, at
		err := j.run(ctx)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "r0001") {
			t.Fatalf("stopped after %d batches: %v", at, err)
		}
		if r := status(t, s, "r0001"); r.Status == "done" || r.Status == "running" {
			t.Errorf("stopped, the catalog says %s", r.Status)
		}
		again := newJob(s, "r0001")
		if err := again.run(t.Context()); err != nil || again.at.Learned != 100+4*batches {
			t.Errorf("stopped after %d batches, it learned %d: %v", at, again.at.Learned, err)
		}
	}
}

// TestPatience: a run ends after evaluations without a better one, and the rate is halved on the
// way.
func TestPatience(t *testing.T) {
	j := newJob(mustStore(t), "")
	j.spec.Schedule.Epochs, j.spec.Schedule.Patience, j.spec.PlateauWait = 20, 4, 2
	j.vals = []float64{1, 3, 2, 3, 3, 1, 9}
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !j.Exhausted() || j.at.Epoch != 6 || j.at.Best != 3 || j.at.BestEpoch != 2 ||
		j.best != 100+2*batches || j.at.Halvings != 2 {
		t.Errorf("%d epochs, best %v of epoch %d at %d, halved %d times", j.at.Epoch, j.at.Best,
			j.at.BestEpoch, j.best, j.at.Halvings)
	}
}

// TestEvaluates: the last epoch is evaluated whatever EvalEvery says.
func TestEvaluates(t *testing.T) {
	j := newJob(nil, "")
	j.Spec.Schedule = setting.Schedule{Epochs: 7, EvalEvery: 3}
	var at []int
	for epoch := 1; epoch <= 7; epoch++ {
		if j.Evaluates(epoch) {
			at = append(at, epoch)
		}
	}
	if !slices.Equal(at, []int{3, 6, 7}) {
		t.Errorf("evaluated after %v", at)
	}
}

// TestBestUnsaved has a checkpoint at the end of an epoch whose best weights no other has.
func TestBestUnsaved(t *testing.T) {
	j := newJob(mustStore(t), "")
	j.spec.ByBest, j.BestUnsaved = true, true
	if err := j.run(t.Context()); err != nil || j.BestUnsaved {
		t.Fatal(err, j.BestUnsaved)
	}
	if want := []string{"started", "checkpoint 1.0", "tested", "checkpoint 4.0"}; !slices.Equal(
		j.taken, want) {
		t.Errorf("%v, want %v", j.taken, want)
	}
}

// TestFailures: an error of the disk says what to do and how to go on, a loss that grows without
// end ends the run, and a run that others train is not touched.
func TestFailures(t *testing.T) {
	s := mustStore(t)
	full := newJob(s, "")
	full.fails = fmt.Errorf("write: %w", syscall.ENOSPC)
	err := full.run(t.Context())
	if err == nil || !strings.Contains(err.Error(),
		"free space on the disk, then go on with --resume r0001") {
		t.Errorf("a full disk: %v", err)
	}
	if r := status(t, s, "r0001"); r.Status != "failed" {
		t.Errorf("the catalog says %s", r.Status)
	}
	grows := newJob(s, "")
	grows.spec.Schedule.Epochs, grows.losses = 9, []float64{1, 200, 400, 800, 1600}
	if err := grows.run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the training diverged") {
		t.Errorf("a loss that grows: %v", err)
	}
	lock, err := runs.Open(s, "r0001").Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	other := newJob(s, "r0001")
	if err := other.run(t.Context()); err == nil || len(other.taken) > 0 {
		t.Errorf("a run that is locked was trained: %v, %v", other.taken, err)
	}
}

// TestDamagedCheckpoint: the checkpoint before is taken where the last is damaged, and the user is
// told.
func TestDamagedCheckpoint(t *testing.T) {
	s := mustStore(t)
	j := newJob(s, "")
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	more := newJob(s, "r0001")
	more.spec.Schedule.Epochs = 5
	if err := more.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := runs.Open(s, "r0001")
	name, err := dir.Current()
	if err != nil {
		t.Fatal(err)
	}
	layouttest.Flip(t, s.FS(), dir.Path(name, runs.StateName), 20, 1)
	told := ""
	last := newWatched(s, "r0001", func(e run.Event) {
		if e.Started != nil {
			told = e.Started.Note
		}
	})
	last.spec.Schedule.Epochs = 5
	if err := last.run(t.Context()); err != nil || last.at.Learned != 100+5*batches {
		t.Errorf("it learned %d: %v", last.at.Learned, err)
	}
	if !strings.Contains(told, name) {
		t.Errorf("the user is told %q, not of %s", told, name)
	}
}
