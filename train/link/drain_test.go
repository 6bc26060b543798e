package link

import (
	"errors"
	"strings"
	"testing"

	"gdb/compute/backend"
)

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
