package superbatch

import "testing"

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
