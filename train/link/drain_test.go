package link

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/compute/backend"
)

// lateBackend has the losses of several steps read together, as a device has.
type lateBackend struct{ backend.Backend }

func (b lateBackend) About() backend.About {
	about := b.Backend.About()
	about.StepsPerRead = 3
	return about
}

// TestLossesReadTogether: the losses of steps that are read together count as those that are read
// after each step, and a loss that is no number is found then.
func TestLossesReadTogether(t *testing.T) {
	now, late := mustTrainer(t, circleConfig("complex")), mustTrainer(t, circleConfig("complex"))
	late.stepper.be = lateBackend{late.stepper.be}
	r, want := rand.New(rand.NewPCG(1, 2)), 0.0
	for key := range uint64(7) {
		edges := randomBatch(r)
		loss, err := now.stepper.sampled(edges, key)
		if err != nil {
			t.Fatal(err)
		}
		want += loss * float64(len(edges))
		if loss, err = late.stepper.sampled(edges, key); loss != 0 || err != nil {
			t.Fatalf("step %d: loss %g before it is read, %v", key, loss, err)
		}
		if key%3 != 2 {
			continue
		}
		if len(late.stepper.unread) != 3 || late.pos.Loss >= want {
			t.Errorf("step %d: %d losses are unread, those before sum to %g", key,
				len(late.stepper.unread), late.pos.Loss)
		}
		for range 2 { // the second time there is nothing to read
			if err := late.settle(); err != nil {
				t.Fatal(err)
			}
			if late.pos.Loss != want || len(late.stepper.unread) != 0 {
				t.Errorf("step %d: losses of %g, want %g; %d are unread", key, late.pos.Loss, want,
					len(late.stepper.unread))
			}
		}
	}
	for i := range late.model.entities.Values {
		late.model.entities.Values[i] = float32(math.NaN())
	}
	if _, err := late.stepper.sampled(randomBatch(r), 9); err != nil {
		t.Fatal(err)
	}
	if err := late.settle(); err == nil || !strings.Contains(err.Error(), "diverged") {
		t.Errorf("a loss that is no number: %v", err)
	}
}

// TestDrainErrors: the error of a batch under way ends the draining of a pipeline, with the place
// where it was.
func TestDrainErrors(t *testing.T) {
	broken := errors.New("broken")
	tr := newTrainer(nil, nil, Config{})
	tr.pipe = &pipeline{begun: 2}
	for range 2 {
		slot := &pipelineSlot{stepper: &stepper{be: backend.OnPool(nil)},
			done: make(chan error, 1)}
		slot.done <- broken
		tr.pipe.slots = append(tr.pipe.slots, slot)
	}
	tr.pos.Epoch, tr.pos.Batch = 3, 17
	err := tr.drain()
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "epoch 4, up to batch 17") {
		t.Errorf("error %v", err)
	}
	if tr.pipe.ended != 1 || tr.pos.Edges != 0 {
		t.Errorf("%d batches were ended, %d edges counted, want one and none", tr.pipe.ended,
			tr.pos.Edges)
	}
	if err := tr.pipe.Close(); err != nil || !tr.pipe.empty() {
		t.Errorf("after Close: %v", err)
	}
}
