package run

import (
	"gdb/sample/superbatch"
	"gdb/train/runs"
)

// Event tells an observer of a run what happened; one of its fields is set.
type Event struct {
	// Started comes once, before the first step.
	Started *Started
	// Progress comes after each step: cheap, for a bar.
	Progress *Progress
	// Epoch comes after each epoch: its record.
	Epoch runs.Record
	// Reading comes before the first of some batches of superbatches: how their rows are read.
	Reading *superbatch.Reading
}

// Started describes a run that begins or goes on.
type Started struct {
	Run     string
	Resumed bool
	Epoch   int // of the next step, from 1
	Batch   int // batches of the epoch that are done
	// Job is what the job adds: its settings, and what it is trained on.
	Job any
	// Note is for the user, if there is one: what went wrong and did not matter.
	Note string
}

// Progress is where the run stands.
type Progress struct{ Epoch, Batch, Batches int }

// Notify calls the observer, if there is one.
func (l *Loop) Notify(e Event) {
	if l.Observer != nil {
		l.Observer(e)
	}
}

// Stepped tells the observer that a step is done, in an epoch with this many batches.
func (l *Loop) Stepped(batches int) {
	l.Notify(Event{Progress: &Progress{Epoch: int(l.At.Epoch) + 1, Batch: int(l.At.Batch),
		Batches: batches}})
}

// started tells the observer that training begins.
func (l *Loop) started() {
	job, notes := l.job.Started()
	l.Notify(Event{Started: &Started{Run: l.Dir.Name(), Resumed: l.Resumed,
		Epoch: int(l.At.Epoch) + 1, Batch: int(l.At.Batch), Job: job, Note: notes}})
}
