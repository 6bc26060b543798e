package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gdb/cmd/gdb/cli"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/sample/superbatch"
	"gdb/train/export"
	"gdb/train/run"
	"gdb/train/runs"
)

// training trains, and tells an observer what happens.
type training func(obs func(run.Event)) (*cli.Finished, error)

// observe prints a run as it goes, and its end.
func (a *app) observe(t *trainFlags, dir string, train training) (err error) {
	if t.tensorboard != "" {
		if err := layout.CheckOutside(a.FS, t.tensorboard); err != nil {
			return cli.Usage(fmt.Errorf("train: --tensorboard %w", err))
		}
	}
	o := &observer{app: a, json: t.json, bar: a.Progress(), events: t.tensorboard}
	defer func() { err = cli.FirstError(err, o.close()) }()
	end, err := train(o.event)
	o.bar.Finish()
	if errors.Is(err, context.Canceled) && o.run != "" {
		fmt.Fprintf(a.Err, "%s: stopped; go on with: %s\n", message.Program,
			a.commandLine([]string{"train", dir, "--resume", o.run}))
		return cli.Reported{Code: exitInterrupted}
	}
	if err = cli.FirstError(err, o.err); err != nil {
		return err
	}
	return o.finished(dir, end)
}

// observer prints a run as it goes.
type observer struct {
	app  *app
	json bool
	bar  *cli.Bar
	run  string
	// events is the directory of --tensorboard, and board what writes there.
	events string
	board  *export.EventWriter
	shown  *superbatch.Reading // the last one
	// noted says that the first epoch is over: all have the same nodes.
	noted bool
	err   error
}

func (o *observer) event(e run.Event) {
	switch {
	case o.err != nil:
	case e.Started != nil:
		o.started(e.Started)
	case e.Progress != nil:
		p := e.Progress
		o.bar.Update(fmt.Sprintf("epoch %d", p.Epoch), int64(p.Batch), int64(p.Batches), "batches")
	case e.Reading != nil:
		if o.verbose() && (o.shown == nil || o.shown.Swept != e.Reading.Swept) {
			o.bar.Finish()
			fmt.Fprintf(o.app.Err, "%s\n", e.Reading)
		}
		o.shown = e.Reading
	case e.Epoch != nil:
		o.err = o.epoch(e.Epoch)
	}
}

// verbose reports whether what the engine does is told.
func (o *observer) verbose() bool { return o.app.Verbose && !o.app.Quiet }

// started says what is trained.
func (o *observer) started(s *run.Started) {
	o.run = s.Run
	if o.events != "" {
		if o.board, o.err = export.CreateEvents(o.app.FS, o.events, s.Run); o.err != nil {
			return
		}
	}
	if o.app.Quiet {
		return
	}
	fmt.Fprintf(o.app.Err, "run %s", s.Run)
	if s.Resumed {
		fmt.Fprintf(o.app.Err, ", resumed in epoch %d after %d batches", s.Epoch, s.Batch)
	}
	fmt.Fprint(o.app.Err, ": ")
	for _, line := range s.Of.Lines(o.app.Verbose) {
		fmt.Fprintln(o.app.Err, line)
	}
	for line := range strings.Lines(s.Note) {
		o.app.Note(strings.TrimSuffix(line, "\n"))
	}
}

// epoch prints the record of an epoch.
func (o *observer) epoch(e runs.Record) error {
	o.bar.Finish()
	if nodes, ok := e.(*runs.Epoch); ok {
		o.unlabeled(nodes.Unlabeled)
	}
	if o.board != nil {
		if err := o.board.Epoch(e); err != nil {
			return err
		}
	}
	if o.json {
		return o.app.PrintLine(e)
	}
	_, err := fmt.Fprintln(o.app.Out, e)
	if o.verbose() {
		fmt.Fprintln(o.app.Err, "  "+e.Engine())
	}
	return err
}

// unlabeled notes once that nodes teach nothing.
func (o *observer) unlabeled(nodes uint64) {
	if nodes > 0 && !o.noted {
		o.app.Note(cli.Count(nodes) + " nodes of the train split have no label, and are left out " +
			"of the loss")
	}
	o.noted = true
}

// finished prints the end of a run, where it is, and what may come next.
func (o *observer) finished(dir string, end *cli.Finished) error {
	if end.Cost != "" && o.verbose() {
		fmt.Fprintln(o.app.Err, end.Cost)
	}
	if o.json {
		return o.app.PrintLine(end.Done)
	}
	if _, err := fmt.Fprintln(o.app.Out, end.Line); err != nil || o.app.Quiet {
		return err
	}
	for _, line := range end.Advice {
		fmt.Fprintln(o.app.Err, line)
	}
	fmt.Fprintf(o.app.Err, "run %s is in %s; next:\n", o.run, filepath.Join(dir, "runs", o.run))
	for _, next := range end.Next {
		fmt.Fprintf(o.app.Err, "  %s\n", o.app.commandLine(next))
	}
	return nil
}

// close ends the event file.
func (o *observer) close() error {
	if o.board == nil {
		return nil
	}
	return o.board.Close()
}
