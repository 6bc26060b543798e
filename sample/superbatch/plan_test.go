package superbatch

import (
	"testing"

	"gdb/sample"
)

// TestNotesBesideTheHeap: what planning a superbatch notes has its place beside the heap of
// sampling, which is given back only after planning, or that of planning, if it takes more.
func TestNotesBesideTheHeap(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ sampling, planning, topology, batches int64 }{
		{40, 20, 50, 110}, {20, 40, 50, 110}, {40, 20, 50, 60}, {60, 10, 5, 90}, {10, 60, 5, 90},
	} {
		ph := Phases{ahead: 3 * mib, use: 8 * mib, sampling: c.sampling * mib,
			planning: c.planning * mib}
		topology := c.topology * mib
		accesses, nextUses := ph.notes(topology, c.batches*mib, 150*mib, 1<<40)
		batches := max(c.batches*mib, ph.ahead+ph.use+accesses+topology+ph.sampling)
		decided := ph.ahead + ph.use + accesses + nextUses + max(ph.sampling, ph.planning)
		if accesses < 150*mib/accessShare || decided > batches && nextUses > 0 {
			t.Errorf("%+v: accesses have %d MiB, and deciding %d of %d", c, accesses/mib,
				decided/mib, batches/mib)
		}
	}
}

// testDemand is what superbatches of large batches are asked to be.
func testDemand() *Demand {
	return &Demand{Batch: sample.BatchSize{Nodes: 160e3, Edges: 190e3, Inner: 14e3, Seeds: 1024},
		Scratch: 12 << 20, Threads: 2, Nodes: 4 << 20, Dim: 64, Pieces: 180e3, AllPieces: 5 << 20,
		Wide: 256, Cut: true, Steps: 500, Storage: 8 << 30, StageRows: 3000}
}

// TestStepRests: making a superbatch has the memory of a step, where phases take turns.
func TestStepRests(t *testing.T) {
	const free, step, topology = 400 << 20, 60 << 20, 200 << 20
	for _, overlap := range []bool{false, true} {
		d := testDemand()
		d.Overlap = overlap
		before, err := d.Phases(topology, free)
		if err != nil {
			t.Fatal(err)
		}
		without := d.Hold(&before, topology, free)
		d.Step = step
		after, err := d.Phases(topology, free)
		if err != nil {
			t.Fatal(err)
		}
		with := d.Hold(&after, topology, free)
		want := int64(step)
		if overlap {
			want = 0
		}
		if got := after.Spare(0) - before.Spare(0); got != want {
			t.Errorf("overlap %v: lists have %d bytes more", overlap, got)
		}
		// Notes have one part in accessShare of what is left.
		if got := without.Bytes - with.Bytes; got > want || got < want-want/accessShare {
			t.Errorf("overlap %v: batches hold %d bytes less", overlap, got)
		}
		making := after.build(topology)
		if overlap {
			continue
		}
		if room := with.Bytes + step; making > room || after.ahead+after.use+with.Accesses+
			topology+after.sampling > room {
			t.Errorf("making a superbatch takes %d bytes of %d", making, room)
		}
	}
}

// TestEvaluationGathers: where rows are used in place, there is memory for the batches of an
// evaluation, whose rows are copied together, and for what is kept of each.
func TestEvaluationGathers(t *testing.T) {
	const free = 400 << 20
	d := testDemand()
	d.InPlace, d.Ready, d.StageRows = true, 1, 0
	alone, err := d.Phases(0, free)
	if err != nil {
		t.Fatal(err)
	}
	d.EvalSteps = 50
	ph, err := d.Phases(0, free)
	if err != nil {
		t.Fatal(err)
	}
	copied := d.Pieces*4*int64(d.Dim) + d.Batch.Inner*4*d.Wide
	if held := d.Hold(&ph, 0, free).Bytes; ph.loop != alone.loop || alone.gather > 0 ||
		ph.gather < copied+ph.lists/2 || held < ph.gather {
		t.Errorf("%d bytes are held, evaluation takes %d, rows of a batch %d", held, ph.gather,
			copied)
	}
	d.InPlace = false
	_, less := d.steps()
	d.EvalSteps = 500
	if _, more := d.steps(); more-less < 450*bytesPerStep+450*d.Pieces/recordLeast*bytesPerRecord {
		t.Errorf("450 batches more take %d bytes", more-less)
	}
	d.EvalSteps = 0
	if _, none := d.steps(); less-none < keptLoader {
		t.Errorf("50 batches take %d bytes", less-none)
	}
}

// TestEvaluationStorage: an evaluation has room for all its batches with their rows, if that is no
// more than half of the storage, else a quarter.
func TestEvaluationStorage(t *testing.T) {
	d := testDemand()
	d.EvalSteps = 50
	rows := d.EvalSteps * d.Pieces * 4 * int64(d.Dim)
	for _, c := range []struct{ storage, least, most int64 }{
		{rows, rows / 4, rows / 4}, {4 * rows, rows, 2 * rows}, {100 * rows, rows, 2 * rows}} {
		d.Storage = c.storage
		if got := d.EvaluationStorage(); got < c.least || got > c.most {
			t.Errorf("of %d bytes an evaluation has %d, whose rows take %d", c.storage, got, rows)
		}
	}
	d.EvalSteps = 0
	if got := d.EvaluationStorage(); got != d.Storage/4 {
		t.Errorf("an evaluation of unknown size has %d of %d bytes", got, d.Storage)
	}
}
