// Package searchcmd is the search of gdb train: the runs of its trials, and what it prints.
package searchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/cmd/gdb/cli"
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
	// TrainRun trains a run with the settings of a trial, from the start or from where it stopped.
	TrainRun func(ctx context.Context, t search.Trial, run string, goesOn bool,
		obs func(run.Event)) error
	// Same returns an error if a run that exists has other settings than a trial.
	Same func(t search.Trial, run string) error
	// Again is the command that goes on with the search, and Next returns commands that use a run.
	Again string
	Next  func(run string) []string

	bar    *cli.Bar
	metric string
	noted  map[string]bool
	failed error // of output
}

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
	rungs := search.Rungs(len(s.Trials), s.Schedule.Epochs, s.Schedule.EvalEvery)
	s.begin(rungs)
	all, err := search.Run(ctx, rungs, s, s.told)
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

// Train trains a trial until it has trained for a number of epochs.
func (s *Search) Train(ctx context.Context, trial, epochs int) (search.Outcome, error) {
	name := s.runName(trial)
	was, err := s.record(ctx, name)
	if err != nil {
		return search.Outcome{}, err
	}
	if was.Name != "" {
		err = s.Same(s.Trials[trial], name)
	}
	if err == nil && was.Status != done && was.Epochs < epochs {
		err = s.train(ctx, trial, epochs, was.Name != "")
	}
	o := search.Outcome{Trial: trial}
	switch {
	case errors.Is(err, setting.ErrDiverged):
		o.Failed = "diverged"
	case err != nil:
		return o, fmt.Errorf("trial %d (%s): %w", trial+1, s.Trials[trial], err)
	}
	if was, err = s.record(ctx, name); err != nil {
		return o, err
	}
	s.metric = was.Metric
	return o, s.read(name, epochs, &o)
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
func (s *Search) train(ctx context.Context, trial, epochs int, goesOn bool) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	err := s.TrainRun(within, s.Trials[trial], s.runName(trial), goesOn, func(e run.Event) {
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
