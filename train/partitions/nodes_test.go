package partitions

import (
	"testing"

	"gdb/sample/partbuffer"
	"gdb/train/plan"
	"gdb/train/setting"
)

// TestReuseIsDecided: a macro-batch is used as often as the next one takes to read, up to a bound.
func TestReuseIsDecided(t *testing.T) {
	for reading, want := range map[int64]int{1: 0, 1900: 0, 3500: 3, 9000: setting.ReuseMost} {
		b := &Nodes{macro: &partbuffer.Macro{}}
		b.moved.ReadBytes, b.moved.EdgeBytes = reading/2, reading-reading/2
		c := &setting.Node{}
		c.Reuse = setting.ReuseAuto
		f := &plan.Forecast{Compute: 1, Sample: .5, Device: &plan.Profile{Sequential: 1000}}
		if err := b.Decide(c, f); err != nil || c.Reuse != want || b.macro.Reuse != max(1, want) {
			t.Errorf("%d bytes: %d times, the buffer %d, want %d, %v", reading, c.Reuse,
				b.macro.Reuse, want, err)
		}
		c.Reuse = setting.ReuseAuto
		if err := b.Decide(c, nil); err == nil {
			t.Error("decided without a forecast")
		}
	}
}
