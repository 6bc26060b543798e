package setting

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestRateFactor(t *testing.T) {
	for _, c := range []struct {
		schedule string
		epoch    uint64
		halvings int
		want     float64
	}{
		{ScheduleConstant, 7, 3, 1}, {"", 7, 0, 1},
		{ScheduleCosine, 0, 0, 1}, {ScheduleCosine, 5, 0, 0.5}, {ScheduleCosine, 10, 0, 0},
		{ScheduleCosine, 9, 0, (1 + math.Cos(0.9*math.Pi)) / 2},
		{ScheduleStep, 4, 0, 1}, {ScheduleStep, 5, 0, 0.1}, {ScheduleStep, 7, 0, 0.1},
		{ScheduleStep, 8, 0, 0.01},
		{SchedulePlateau, 9, 0, 1}, {SchedulePlateau, 1, 3, 0.125},
	} {
		s := Node{Learning: Learning{LRSchedule: c.schedule}, Schedule: Schedule{Epochs: 10}}
		if got := s.RateFactor(c.epoch, c.halvings); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s, epoch %d of 10, %d halvings: %v, want %v", c.schedule, c.epoch,
				c.halvings, got, c.want)
		}
	}
}

// TestRateInWords: the epochs that are told are those whose rate changes.
func TestRateInWords(t *testing.T) {
	for epochs := 2; epochs < 30; epochs++ {
		s := Node{Learning: Learning{LRSchedule: ScheduleStep, LR: 0.5},
			Schedule: Schedule{Epochs: epochs}, NodeLearning: NodeLearning{Warmup: 3}}
		var at []string
		for e := 1; e < epochs; e++ {
			if s.RateFactor(uint64(e), 0) != s.RateFactor(uint64(e-1), 0) {
				at = append(at, "from epoch "+strconv.Itoa(e+1), "from "+strconv.Itoa(e+1))
			}
		}
		text := s.Rate()
		if !strings.HasPrefix(text, "rate 0.5 after 3 steps of warm-up, ") ||
			!strings.Contains(text, at[0]+",") {
			t.Errorf("%d epochs: %q, but the rate changes %v", epochs, text, at)
		}
		if len(at) > 2 && !strings.HasSuffix(text, at[3]) {
			t.Errorf("%d epochs: %q, but the rate changes %v", epochs, text, at)
		}
	}
	for patience, want := range map[int]int{0: 5, 5: 2, 30: 10} {
		if got := (&Node{Schedule: Schedule{Patience: patience}}).PlateauWait(); got != want {
			t.Errorf("patience %d: the rate is halved after %d evaluations, want %d", patience,
				got, want)
		}
	}
}
