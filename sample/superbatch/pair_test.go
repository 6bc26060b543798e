package superbatch

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"gdb/internal/mem"
	"gdb/sample"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pairConfig has superbatches in pairs, of which slots are not all kept.
func pairConfig(t *testing.T, reading *[]Reading) Config {
	c := swept(testConfig(t), reading)
	c.SweepAhead, c.Slots, c.SlotsKept = true, 1000, 400
	return c
}

// TestPairs: a short superbatch comes first, and the other is there before the first batch; a run
// of few batches has no pair. Slots that are not kept stay between the two, or are spilled.
func TestPairs(t *testing.T) {
	for _, spill := range []bool{false, true} {
		for _, pair := range []struct{ epochs, batches, superbatches int }{
			{1, 1, 13}, {1, 3, 5}, {1, 4, 7}, {1, 0, 2}, {3, 0, 2}, {3, 20, 4}, {3, 13, 6},
		} {
			var reading []Reading
			c := pairConfig(t, &reading)
			c.Epochs, c.Batches = uint64(pair.epochs), pair.batches
			want := wantHashes(t, c)
			if c.FS, c.Budget = vfs.NewMem(), mem.NewBudget(0); spill {
				c.Spill = func(uint64) bool { return true }
			}
			l, heads := mustOpen(t, c), 0
			got, err := stepHashes(func(e uint64) (sample.Batches, error) {
				b, err := l.Epoch(e)
				return &watched{b, func() {
					if s := l.current; s != nil && s.want.head && l.due > s.first {
						heads++
						if next := l.following(); next == nil || next.first != s.end {
							t.Errorf("%+v: nothing follows the head at step %d", pair, s.first)
						}
					}
				}}, err
			}, 0, c.Epochs)
			if err != nil || !slices.Equal(got, want) || int(l.builder.seq) != pair.superbatches ||
				(heads > 0) != (pair.batches == 0 || pair.batches >= headShare) {
				t.Errorf("%+v: %d of %d batches, %d with a head, %d superbatches, %v", pair,
					len(got), len(want), heads, l.builder.seq, err)
			}
			s := l.CacheStats()
			checkTold(t, &c, reading, s.Requests-s.Hits)
			closeAll(t, l)
		}
	}
}

// TestTailFails: what goes wrong with the second superbatch of a pair is reported when it is due.
func TestTailFails(t *testing.T) {
	var reading []Reading
	c := pairConfig(t, &reading)
	want, calls, bad := wantHashes(t, c), atomic.Int32{}, errors.New("no sampler")
	c.Drawer = func(workers int, perEpoch, first, end uint64) (sample.Drawer, error) {
		if calls.Add(1) > 1 {
			return nil, bad
		}
		return testDrawer(workers, perEpoch, first, end)
	}
	l := mustOpen(t, c)
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	head := c.Costs.Head(39, 0)
	if !errors.Is(err, bad) || errors.Is(err, io.EOF) || !slices.Equal(got, want[:head]) {
		t.Errorf("%d batches, %d are the head's: %v", len(got), head, err)
	}
	closeAll(t, l)
}

// TestHead: a head is no longer than what is swept for at the same time takes.
func TestHead(t *testing.T) {
	c := Costs{Read: 1e-5, Byte: 1e-9, Step: 0.2}
	for _, h := range []struct {
		batches  int
		features int64
		want     int
	}{{1, 1 << 32, 0}, {3, 1 << 32, 0}, {4, 1 << 32, 1}, {168, 1 << 32, 34}, {100, 1 << 32, 25},
		{1 << 20, 1 << 32, 34}, {1 << 20, 1 << 62, 1 << 18}, {100, 1 << 20, 1}} {
		if got := c.Head(h.batches, h.features); got != h.want {
			t.Errorf("%+v: %d", h, got)
		}
	}
}

// TestTrainingStartsBeforeAllIsSampled: where superbatches overlap the first is short, and the next
// is under way when its first batch is handed out.
func TestTrainingStartsBeforeAllIsSampled(t *testing.T) {
	for _, batches := range []int{0, 1, 9, 20} {
		c := testConfig(t)
		c.Overlap, c.Epochs, c.Batches = true, 3, batches
		want := wantHashes(t, c)
		c.FS, c.Budget = vfs.NewMem(), mem.NewBudget(0)
		l, lengths, looked := mustOpen(t, c), []int(nil), -1
		got, err := stepHashes(func(e uint64) (sample.Batches, error) {
			b, err := l.Epoch(e)
			return &watched{b, func() {
				s := l.current
				if s == nil || l.due != s.first+1 || looked == int(l.due) {
					return
				}
				looked = int(l.due)
				if lengths = append(lengths, int(s.end-s.first)); s.end < uint64(len(want)) &&
					l.upcoming == nil {
					t.Errorf("%d batches: nothing is made beside steps %d to %d", batches, s.first,
						s.end)
				}
			}}, err
		}, 0, c.Epochs)
		most := len(want)
		if batches > 0 {
			most = batches
		}
		if err != nil || !slices.Equal(got, want) || lengths[0] != max(1, most/headShare) ||
			lengths[1] != min(most, len(want)-lengths[0]) {
			t.Errorf("%d batches: superbatches of %d, %d of %d batches, %v", batches, lengths,
				len(got), len(want), err)
		}
		closeAll(t, l)
	}
}
