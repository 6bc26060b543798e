// Package run takes a run through its life, whatever it learns. It makes the run's directory or
// loads a checkpoint, trains epochs until the last one or until nothing improves, writes
// checkpoints in between, and tests the best weights. An interrupted run writes a checkpoint too.
// What is learned is a Session; the Loop drives it.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gdb/kv"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"
)

const (
	// CheckpointPause is the longest time between checkpoints while a run trains.
	CheckpointPause = 30 * time.Second
	// checkpointShare is how many times as long as the last checkpoint took the next one waits:
	// checkpoints with vectors of nodes can be large.
	checkpointShare = 10
	// checkpointLeast is the least time between checkpoints at the end of epochs: it is faster to
	// repeat an epoch of milliseconds than to save it.
	checkpointLeast = time.Second
)

// Spec says what is to be known of a run before anything of it is opened: its settings are checked.
type Spec struct {
	// Name names a new run; "" takes the next free name.
	Name     string
	Schedule setting.Schedule
	// Created is when a run that goes on was made.
	Created time.Time
	// ByBest writes checkpoints only after an evaluation that is the best so far and at the end,
	// and none by the clock.
	ByBest bool
	// PlateauWait is after how many evaluations without a better one the learning rate is halved; 0
	// never halves it.
	PlateauWait int
	// Better reports whether a value of the metric is better than another.
	Better func(a, b float64) bool
	// At says where the run stands. The loop moves it on, and so does the session, which puts it
	// into checkpoints.
	At *Position
	// Open opens what is read, takes the memory, and returns what trains.
	Open func(ctx context.Context) (Session, error)
}

// Session trains a run: it has the data, a model, and the state of both. A loop calls it from one
// goroutine, in the order of the methods.
type Session interface {
	// Begin sets the initial state of a training. The directory belongs to the run by now.
	Begin(ctx context.Context) error
	// Restore reads all that a run needs to go on from a checkpoint. If it returns an error about
	// damage, the previous checkpoint is tried.
	Restore(checkpoint string) error
	// WriteRun writes run.json.
	WriteRun() error
	// Restored does what can only be done once it is known how far the run has come.
	Restored(ctx context.Context) error
	// Begun returns what observers are told when the run begins.
	Begun() Begun
	// Steps trains on the rest of the current epoch.
	Steps(ctx context.Context) error
	// FinishEpoch evaluates if it is due, counts the epoch and returns its record.
	FinishEpoch(ctx context.Context) (runs.Record, error)
	// WriteState writes the state of a checkpoint.
	WriteState() error
	// Test evaluates the best weights on the test split.
	Test(ctx context.Context) error
	// Tell fills in what the catalog says of the run: its model, metric, and test.
	Tell(r *kv.RunMeta)
}

// Loop takes a run through its life. It may be used by one goroutine.
type Loop struct {
	Spec // set once the settings are checked

	// Dir is the run's directory, and Resumed says that the run existed before.
	Dir     runs.Dir
	Resumed bool
	Metrics *runs.Metrics
	// BestUnsaved says that no checkpoint has the best weights, so that one is due.
	BestUnsaved bool

	store    *layout.Store
	observer func(Event) // nil for none
	session  Session
	diverged Divergence
	notes    []string
	saved    time.Time     // when the last checkpoint was written
	saving   time.Duration // how long that took
	closers  []io.Closer   // in the order of opening
}

// New returns the loop of a run of a store: of the one that resume names, or of a new one if that
// is "". observer is called with what happens, from the goroutine of the run; nil for none.
func New(store *layout.Store, resume string, observer func(Event)) *Loop {
	l := &Loop{store: store, observer: observer, Resumed: resume != ""}
	if l.Resumed {
		l.Dir = runs.Open(store, resume)
	}
	return l
}

// Run takes a run through its life, and closes what was opened. check checks the settings and, if a
// run goes on, compares them with those of the run.
func (l *Loop) Run(ctx context.Context, check func() (Spec, error)) error {
	spec, err := check()
	if err == nil {
		if l.Spec = spec; l.Created.IsZero() {
			l.Created = time.Now().UTC()
		}
		err = l.run(ctx)
	}
	return advised(l.Dir, errors.Join(err, l.Close()))
}

// CloseLater makes Close close something, before what was opened earlier.
func (l *Loop) CloseLater(c ...io.Closer) { l.closers = append(l.closers, c...) }

// Close closes everything, in the reverse order of opening.
func (l *Loop) Close() (err error) {
	for _, c := range slices.Backward(l.closers) {
		err = errors.Join(err, c.Close())
	}
	l.closers = nil
	return err
}

// Note adds a note for the user, to be told when the run begins; "" is no note.
func (l *Loop) Note(text string) {
	if text != "" {
		l.notes = append(l.notes, text)
	}
}

// Notes returns the notes so far.
func (l *Loop) Notes() []string { return l.notes }

func (l *Loop) run(ctx context.Context) error {
	if !l.Resumed && l.Spec.Name != "" { // before memory is planned, which takes time
		l.Dir = runs.Open(l.store, l.Spec.Name)
		if err := l.Dir.IsNew(); err != nil {
			return err
		}
	}
	var err error
	if l.session, err = l.Open(ctx); err != nil {
		return err
	}
	if err := l.begin(ctx); err != nil {
		return err
	}
	if l.At.Done && int(l.At.Epoch) >= l.Schedule.Epochs {
		return l.record(ctx, "done") // it may have failed to say so
	}
	if err := l.record(ctx, "running"); err != nil {
		return err
	}
	l.started()
	err = l.epochs(ctx)
	if err == nil {
		return l.record(ctx, "done")
	}
	status, err := runs.Ending(l.Dir.Name(), l.At.Epoch+1, l.At.Batch, err)
	return errors.Join(err, l.record(ctx, status))
}

// begin makes the directory of a new run, or loads the checkpoint of an old one.
func (l *Loop) begin(ctx context.Context) (err error) {
	if err := l.claim(); err != nil {
		return err
	}
	if err := l.session.Begin(ctx); err != nil {
		return err
	}
	if l.Resumed {
		if err := l.load(); err != nil {
			return err
		}
	}
	if err := l.session.WriteRun(); err != nil {
		return err
	}
	if err := l.session.Restored(ctx); err != nil {
		return err
	}
	if l.Metrics, err = l.Dir.OpenMetrics(int(l.At.Epoch)); err != nil {
		return err
	}
	l.CloseLater(l.Metrics)
	l.saved = time.Now()
	return nil
}

// claim makes the directory of a new run, or opens that of an old one, and locks it.
func (l *Loop) claim() error {
	var lock io.Closer
	var err error
	switch {
	case l.Resumed:
		lock, err = l.Dir.Lock()
	case l.Spec.Name == "":
		l.Dir, lock, err = runs.CreateNext(l.store)
	default:
		lock, err = l.Dir.Create()
	}
	if err != nil {
		return err
	}
	l.CloseLater(lock)
	return nil
}

// load restores the current checkpoint, or the newest that is not damaged. A run that was killed
// before its first checkpoint begins again.
func (l *Loop) load() error {
	name, note, err := l.Dir.Whole(l.session.Restore)
	if errors.Is(err, runs.ErrNoCheckpoint) {
		return nil
	}
	if err != nil || note == "" {
		return err
	}
	l.Note(note)
	return l.Dir.GoOn(name)
}

// epochs trains from the current position to the end of the run.
func (l *Loop) epochs(ctx context.Context) error {
	l.At.Done = false
	for int(l.At.Epoch) < l.Schedule.Epochs && !l.Exhausted() {
		err := ctx.Err() // a run that is stopped between epochs begins no other
		if err == nil {
			err = l.session.Steps(ctx)
		}
		if err == nil {
			err = l.finishEpoch(ctx)
		}
		if err != nil {
			return l.interrupted(ctx, err)
		}
		if l.isDue(checkpointLeast) || l.BestUnsaved {
			if err := l.Checkpoint(); err != nil {
				return err
			}
		}
	}
	return l.finish(ctx)
}

func (l *Loop) finishEpoch(ctx context.Context) error {
	rec, err := l.session.FinishEpoch(ctx)
	if err != nil {
		return err
	}
	if err := l.Metrics.Add(rec); err != nil {
		return err
	}
	l.Notify(Event{Epoch: rec})
	return l.diverged.Add(rec.MeanLoss())
}

// finish tests the best weights, and writes the last checkpoint with the last ones.
func (l *Loop) finish(ctx context.Context) error {
	if err := l.session.Test(ctx); err != nil {
		return l.interrupted(ctx, err)
	}
	l.At.Done = true
	return errors.Join(l.Checkpoint(), l.session.WriteRun())
}

// Exhausted reports whether validation has not improved for so long that the run ends.
func (l *Loop) Exhausted() bool {
	return l.Schedule.Patience > 0 && l.At.SinceBest >= l.Schedule.Patience
}

// Evaluates reports whether there is an evaluation after an epoch, counted from 1.
func (l *Loop) Evaluates(epoch int) bool {
	return epoch%l.Schedule.EvalEvery == 0 || epoch == l.Schedule.Epochs
}

// Improves records the result of the evaluation after an epoch, and reports whether it is the best
// so far. It halves the learning rate once enough evaluations were not better.
func (l *Loop) Improves(v float64, epoch int) bool {
	p := l.At
	if !p.HasBest || l.Better(v, p.Best) {
		p.HasBest, p.Best, p.BestEpoch, p.SinceBest, p.Plateau = true, v, epoch, 0, 0
		return true
	}
	p.SinceBest++
	if l.PlateauWait > 0 {
		if p.Plateau++; p.Plateau >= l.PlateauWait {
			p.Plateau = 0
			p.Halvings++
		}
	}
	return false
}

// IsDue reports whether the last checkpoint is so old that another should be written in the
// middle of an epoch.
func (l *Loop) IsDue() bool { return l.isDue(CheckpointPause) }

func (l *Loop) isDue(pause time.Duration) bool {
	return !l.ByBest && time.Since(l.saved) > max(pause, checkpointShare*l.saving)
}

// Checkpoint writes a checkpoint.
func (l *Loop) Checkpoint() error {
	if err := l.Metrics.Sync(); err != nil { // a checkpoint's epochs have their records
		return err
	}
	begun := time.Now()
	err := l.session.WriteState()
	l.saved = time.Now()
	if l.saving = l.saved.Sub(begun); err == nil {
		l.BestUnsaved = false
	}
	return err
}

// interrupted writes a checkpoint if err is the cancellation of ctx.
func (l *Loop) interrupted(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause == nil || !errors.Is(err, cause) {
		return err
	}
	if failed := l.Checkpoint(); failed != nil {
		return fmt.Errorf("interrupted, and where it stood could not be saved: it goes on from "+
			"the checkpoint before: %w", failed)
	}
	return err
}

// record writes the run's record to the catalog, for others to see.
func (l *Loop) record(ctx context.Context, status string) error {
	r := kv.RunMeta{Name: l.Dir.Name(), Created: l.Created, Updated: time.Now().UTC(),
		Status: status, Epochs: int(l.At.Epoch), Best: l.At.Best,
		Snapshot: l.store.Meta().Snapshot}
	l.session.Tell(&r)
	if err := l.store.Catalog().PutRun(context.WithoutCancel(ctx), r); err != nil {
		return fmt.Errorf("train: note the run in the catalog: %w", err)
	}
	return nil
}
