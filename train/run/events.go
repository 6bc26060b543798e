package run

import (
	"gdb/sample/superbatch"
	"gdb/train/runs"
	"strings"
)

// Event tells an observer of a run what happened. One of its fields is set.
type Event struct {
	// Started comes once, before the first step.
	Started *Started
	// Progress comes after each step. It is cheap, and meant for a progress bar.
	Progress *Progress
	// Epoch comes after each epoch, and is its record.
	Epoch runs.Record
	// Reading comes with superbatches, before each span of their batches: it says how the
	// rows are read.
	Reading *superbatch.Reading
}

// Started describes a run that begins or goes on.
type Started struct {
	Run     string
	Resumed bool
	Epoch   int // of the next step, from 1
	Batch   int // batches of the epoch that were done before
	// Of is what the kind of run adds: its settings, and what it is trained on.
	Of Begun
	// Note has remarks for the user, such as what went wrong without harm, a line each.
	Note string
}

// Begun describes a run that begins, of some kind.
type Begun interface {
	// Lines says to people what is trained. The first line follows the name of the run. verbose
	// adds what the engine will do.
	Lines(verbose bool) []string
}

// Progress says how far the run has come.
type Progress struct{ Epoch, Batch, Batches int }

// Notify calls the observer, if there is one.
func (l *Loop) Notify(e Event) {
	if l.observer != nil {
		l.observer(e)
	}
}

// Stepped tells the observer that a step is done, in an epoch with this many batches.
func (l *Loop) Stepped(batches int) {
	l.Notify(Event{Progress: &Progress{Epoch: int(l.At.Epoch) + 1, Batch: int(l.At.Batch),
		Batches: batches}})
}

// started tells the observer that training begins.
func (l *Loop) started() {
	l.Notify(Event{Started: &Started{Run: l.Dir.Name(), Resumed: l.Resumed,
		Epoch: int(l.At.Epoch) + 1, Batch: int(l.At.Batch), Of: l.session.Begun(),
		Note: strings.Join(l.notes, "\n")}})
}
