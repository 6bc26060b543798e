// Package searchcmd is the search of gdb train: the runs of its trials, and what it prints.
package searchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gdb/cmd/gdb/cli"
	"gdb/internal/bug"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/search"
	"gdb/train/setting"
)

// Flags are the flags of a search.
type Flags struct {
	Space  string
	Trials int
}

// Help of the flags.
const (
	SpaceHelp = "search these settings by successive halving: 'hidden=64,256;lr=1e-3..1e-1' " +
		"(gdb help search)"
	TrialsHelp = "trials of --search"
)

// Search is a search as its command was given.
type Search struct {
	*cli.App
	Store    *layout.Store
	Space    search.Space
	Trials   []search.Trial
	Name     string // of the search; its runs are NAME-01, NAME-02, …
	Schedule setting.Schedule
	JSON     bool
	// Groups has the number of each trial's group: those of one can share what is open, and Open
	// opens that for them.
	Groups []int
	Open   func(ctx context.Context, group []search.Trial) (Opened, error)
	// Same returns an error if a run that exists has other settings than a trial.
	Same func(t search.Trial, run string) error
	// Again is the command that goes on with the search, and Next returns commands that use a run.
	Again string
	Next  func(run string) []string

	bar    *cli.Bar
	metric string
	opened Opened // for trials of the group open; nil for none
	group  int
	failed error // of output

	mu    sync.Mutex // guards what runs that train at the same time tell
	noted map[string]bool
}

// Opened is what trials of a group share.
type Opened interface {
	// Most is how many of them may train at the same time.
	Most() int
	// Begin returns what trains a run with the settings of a trial, from the start or from where it
	// stopped: it is called once, at the same time as all others that were begun.
	Begin() TrainRun
	Close() error
}

// TrainRun trains a run with the settings of a trial, from the start or from where it stopped.
type TrainRun func(ctx context.Context, t search.Trial, run string, goesOn bool,
	obs func(run.Event)) error

// Parse reads the flags, and draws the trials.
func (f *Flags) Parse(seed uint64) (space search.Space, trials []search.Trial, err error) {
	if f.Trials < 2 {
		return nil, nil, cli.Usage(fmt.Errorf("train: --trials %d: want 2 or more", f.Trials))
	}
	if space, err = search.Parse(f.Space); err == nil {
		trials, err = space.Trials(f.Trials, seed)
	}
	for _, d := range space {
		if r := setting.Find(d.Name); err == nil && (r == nil || !r.In(setting.Train)) {
			err = fmt.Errorf("%s is no setting of a training", d.Name)
		} else if err == nil && r.Free == r.For {
			err = fmt.Errorf("%s is the same in all trials: give it as --%s", d.Name, r.Name)
		}
	}
	if err == nil && len(trials) == 1 {
		err = errors.New("there is one trial only: give more values")
	}
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("train: --search: %w", err))
	}
	return space, trials, nil
}

// NextName returns the first of s0001, s0002, … that no run of the store begins with.
func NextName(all []kv.RunMeta) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("s%04d", n)
		if !slices.ContainsFunc(all, func(r kv.RunMeta) bool {
			return strings.HasPrefix(r.Name, name+"-")
		}) {
			return name
		}
	}
}

// runName returns the name of the run of a trial.
func (s *Search) runName(trial int) string {
	digits := len(fmt.Sprint(len(s.Trials)))
	return fmt.Sprintf("%s-%0*d", s.Name, max(2, digits), trial+1)
}

// Do trains the trials and prints what each reached, and the best.
func (s *Search) Do(ctx context.Context) error {
	s.bar, s.noted = s.Progress(), map[string]bool{}
	if err := s.checkRuns(ctx); err != nil {
		return err
	}
	rungs := search.Rungs(len(s.Trials), s.Schedule.Epochs, s.Schedule.EvalEvery)
	s.begin(rungs)
	all, err := search.Run(ctx, rungs, s, s.told)
	err = cli.FirstError(err, s.close())
	s.bar.Finish()
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(s.Err, "%s: stopped; go on with: %s\n", message.Program, s.Again)
		return cli.Reported{Code: cli.Interrupted}
	}
	if err != nil {
		return err
	}
	return s.end(ctx, all)
}

// checkRuns returns an error if the catalog has runs of trials whose directories are gone.
func (s *Search) checkRuns(ctx context.Context) error {
	all, err := s.Store.Catalog().Runs(ctx)
	if err != nil {
		return err
	}
	var gone []string
	for i := range s.Trials {
		name := s.runName(i)
		if slices.Contains(runs.Names(all), name) && !runs.Open(s.Store, name).Exists() {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	names := strings.Join(gone, " ")
	return fmt.Errorf("train: search %s: the catalog has %s %s, whose files are gone: %s runs "+
		"%s rm %s takes them out of it", s.Name, cli.Plural(len(gone), "run"), names,
		message.Program, s.Store.Dir(), names)
}

// begin says what is searched, and what that takes.
func (s *Search) begin(rungs []search.Rung) {
	if s.Quiet {
		return
	}
	var names []string
	for _, d := range s.Space {
		names = append(names, d.Name)
	}
	fmt.Fprintln(s.Err, message.Wrap(fmt.Sprintf("search %s: %d trials of %s; at most %d epochs "+
		"in all, %d if every trial trained to the end", s.Name, len(s.Trials),
		strings.Join(names, ", "), search.Cost(rungs), len(s.Trials)*s.Schedule.Epochs)))
}

// Better compares by the metric of the runs.
func (s *Search) Better(a, b float64) bool { return setting.Better(s.metric, a, b) }

// Train trains trials until each has trained for a number of epochs: those of a group at the same
// time, as many as may, and what was trained before not again.
func (s *Search) Train(ctx context.Context, trials []int, epochs int,
	told func(search.Outcome)) error {
	for len(trials) > 0 {
		group := s.Groups[trials[0]]
		some, rest := []int(nil), []int(nil)
		for _, t := range trials {
			if s.Groups[t] == group {
				some = append(some, t)
			} else {
				rest = append(rest, t)
			}
		}
		if err := s.trainGroup(ctx, group, some, epochs, told); err != nil {
			return err
		}
		trials = rest
	}
	return nil
}

// trainGroup trains trials of a group.
func (s *Search) trainGroup(ctx context.Context, group int, trials []int, epochs int,
	told func(search.Outcome)) error {
	left := map[int]bool{} // those to train, and whether they go on
	for _, t := range trials {
		was, err := s.record(ctx, s.runName(t))
		if err == nil && was.Name != "" {
			err = s.Same(s.Trials[t], was.Name)
		}
		if err != nil {
			return s.named(t, err)
		}
		if was.Status != done && was.Epochs < epochs {
			left[t] = was.Name != ""
		}
	}
	for len(trials) > 0 {
		some := trials
		if len(left) > 0 {
			if err := s.use(ctx, group); err != nil {
				return err
			}
			some = trials[:min(len(trials), s.opened.Most())]
		}
		outcomes, err := s.trainBeside(ctx, some, left, epochs)
		if err != nil {
			return err
		}
		for _, o := range outcomes {
			told(o)
		}
		trials = trials[len(some):]
	}
	return nil
}

// named says of which trial an error is.
func (s *Search) named(trial int, err error) error {
	return fmt.Errorf("trial %d (%s): %w", trial+1, s.Trials[trial], err)
}

// use has opened what the trials of a group share.
func (s *Search) use(ctx context.Context, group int) error {
	if s.opened != nil && s.group == group {
		return nil
	}
	if err := s.close(); err != nil {
		return err
	}
	var all []search.Trial
	for i, t := range s.Trials {
		if s.Groups[i] == group {
			all = append(all, t)
		}
	}
	opened, err := s.Open(ctx, all)
	if err != nil {
		return s.named(slices.Index(s.Groups, group), err)
	}
	s.opened, s.group = opened, group
	return nil
}

// close closes what is open.
func (s *Search) close() error {
	o := s.opened
	if s.opened = nil; o == nil {
		return nil
	}
	return o.Close()
}

// trainBeside trains trials at the same time, those that are left to train. The first error stops
// all of them.
func (s *Search) trainBeside(ctx context.Context, trials []int, left map[int]bool,
	epochs int) ([]search.Outcome, error) {
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcomes := make([]search.Outcome, len(trials))
	begun := make([]TrainRun, len(trials))
	for i, t := range trials {
		outcomes[i].Trial = t
		if _, train := left[t]; train {
			begun[i] = s.opened.Begin()
		}
	}
	var all sync.WaitGroup
	for i, t := range trials {
		if begun[i] == nil {
			continue
		}
		goesOn := left[t]
		all.Go(func() {
			defer bug.Catch()
			err := s.train(within, begun[i], t, epochs, goesOn)
			switch {
			case errors.Is(err, setting.ErrDiverged):
				outcomes[i].Failed = "diverged"
			case err != nil:
				stop(s.named(t, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(within); err != nil {
		return nil, err
	}
	for i, t := range trials {
		delete(left, t)
		r, err := s.record(ctx, s.runName(t))
		if err == nil {
			s.metric = r.Metric
			err = s.read(r.Name, epochs, &outcomes[i])
		}
		if err != nil {
			return nil, s.named(t, err)
		}
	}
	return outcomes, nil
}

// done is the status of a run that has ended as it should.
const done = "done"

// record returns what the catalog has of a run; nothing if there is no such run.
func (s *Search) record(ctx context.Context, name string) (r kv.RunMeta, err error) {
	all, err := s.Store.Catalog().Runs(ctx)
	if i := slices.IndexFunc(all, func(r kv.RunMeta) bool { return r.Name == name }); i >= 0 {
		r = all[i]
	}
	return r, err
}

// train trains a trial, and stops it once it has trained for a number of epochs: it writes a
// checkpoint then, as a run does that is interrupted.
func (s *Search) train(ctx context.Context, begun TrainRun, trial, epochs int, goesOn bool) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	err := begun(within, s.Trials[trial], s.runName(trial), goesOn, func(e run.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case e.Started != nil:
			s.note(e.Started.Note)
		case e.Progress != nil:
			s.bar.Update(fmt.Sprintf("trial %d epoch %d", trial+1, e.Progress.Epoch),
				int64(e.Progress.Batch), int64(e.Progress.Batches), "batches")
		case e.Epoch != nil && e.Epoch.Ordinal() >= epochs && epochs < s.Schedule.Epochs:
			stop()
		}
	})
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// note prints the notes of a run that no trial before had.
func (s *Search) note(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); !s.noted[line] {
			s.noted[line] = true
			s.bar.Finish()
			s.Note(line)
		}
	}
}

// read finds what a run reached in its first epochs.
func (s *Search) read(name string, epochs int, o *search.Outcome) error {
	dir := runs.Open(s.Store, name)
	if !dir.Exists() {
		return nil
	}
	file, err := dir.ReadAny()
	if err != nil {
		return err
	}
	return dir.Records(&file, func(e runs.Record) error {
		if e.Ordinal() > epochs {
			return nil
		}
		o.Epochs = e.Ordinal()
		for _, v := range e.Scalars() {
			if v.Name == "metric/val" && (o.BestEpoch == 0 || s.Better(v.Value, o.Best)) {
				o.Best, o.BestEpoch = v.Value, e.Ordinal()
			}
		}
		return nil
	})
}

// settingsAt is the column of the settings of a trial.
const settingsAt = 29

// told prints a heading as a rung begins, and a line for a trial of it.
func (s *Search) told(r search.Rung, o *search.Outcome) {
	s.bar.Finish()
	switch {
	case s.JSON && o != nil:
		s.fail(s.PrintLine(s.outcome(o)))
	case s.JSON || s.Quiet:
	case o == nil:
		s.printf("%s, %s each\n%-12s %7s %6s  settings\n", cli.Plural(r.Trials, "trial"),
			cli.Plural(r.Epochs, "epoch"), "run", "val", "epoch")
	default:
		s.printf("%s", s.line(o))
	}
}

// line is what the screen says of a trial.
func (s *Search) line(o *search.Outcome) string {
	val, epoch := "-", "-"
	switch {
	case o.Failed != "":
		val = o.Failed
	case o.BestEpoch > 0:
		val, epoch = runs.Figure(o.Best, 4), fmt.Sprint(o.BestEpoch)
	}
	text := message.WrapIndented(s.Trials[o.Trial].String(), settingsAt)
	return fmt.Sprintf("%-12s %7s %6s  %s\n", s.runName(o.Trial), val, epoch,
		strings.TrimLeft(text, " "))
}

func (s *Search) printf(format string, args ...any) {
	_, err := fmt.Fprintf(s.Out, format, args...)
	s.fail(err)
}

// fail keeps the first error of output.
func (s *Search) fail(err error) { s.failed = cli.FirstError(s.failed, err) }

// outcome is what --json says of a trial.
func (s *Search) outcome(o *search.Outcome) any {
	settings := map[string]string{}
	for _, v := range s.Trials[o.Trial] {
		settings[v.Name] = v.Text
	}
	out := map[string]any{"event": "trial", "trial": o.Trial + 1, "run": s.runName(o.Trial),
		"settings": settings, "epochs": o.Epochs, "val": nil}
	if o.BestEpoch > 0 {
		out["val"], out["best_epoch"] = o.Best, o.BestEpoch
	}
	if o.Failed != "" {
		out["failed"] = o.Failed
	}
	return out
}

// end prints the best trial, and what may come next.
func (s *Search) end(ctx context.Context, all []search.Outcome) error {
	best := all[0]
	name := s.runName(best.Trial)
	if best.Failed != "" || best.BestEpoch == 0 {
		return fmt.Errorf("train: search %s: no trial has a value of val: %s", s.Name,
			cmp.Or(best.Failed, "give --eval-every fewer epochs, or a val split"))
	}
	r, err := s.record(ctx, name)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintLine(map[string]any{"event": "done", "search": s.Name, "run": name,
			"metric": r.Metric, "best_val": best.Best, "best_epoch": best.BestEpoch,
			"test": r.TestScore(), "trials": len(s.Trials)})
	}
	test := ""
	if r.TestScore() != nil {
		test = ", test " + runs.Figure(r.Test, 4)
	}
	s.printf("best: run %s, %s %s on val in epoch %d%s\n", name, r.Metric,
		runs.Figure(best.Best, 4), best.BestEpoch, test)
	if s.failed == nil && !s.Quiet {
		fmt.Fprintln(s.Err, message.Wrap("its settings: "+s.Trials[best.Trial].String()+"; next:"))
		for _, next := range s.Next(name) {
			fmt.Fprintf(s.Err, "  %s\n", next)
		}
	}
	return s.failed
}
