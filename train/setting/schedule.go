package setting

import (
	"fmt"
	"math"
)

// Schedules of the learning rate.
const (
	ScheduleConstant = "constant"
	// ScheduleCosine falls to 0 along half a cosine over the epochs.
	ScheduleCosine = "cosine"
	// ScheduleStep is a tenth after half of the epochs, and a hundredth after three quarters.
	ScheduleStep = "step"
	// SchedulePlateau is halved whenever validation has not improved for PlateauWait evaluations.
	SchedulePlateau = "plateau"
)

// RateFactor returns what the rate is multiplied by in an epoch, counted from 0; halvings counts
// how often a plateau has halved it.
func (c *Node) RateFactor(epoch uint64, halvings int) float64 {
	done := float64(epoch) / float64(max(1, c.Epochs))
	switch c.LRSchedule {
	case ScheduleCosine:
		return (1 + math.Cos(math.Pi*min(1, done))) / 2
	case ScheduleStep:
		switch {
		case done >= 0.75:
			return 0.01
		case done >= 0.5:
			return 0.1
		}
	case SchedulePlateau:
		return math.Ldexp(1, -halvings)
	}
	return 1
}

const (
	// plateauShare of the patience, plateauLeast at least, is how many evaluations may go by before
	// the rate is halved: a rate can show what it does before the run ends. plateauWait is used for
	// a run that does not end for lack of improvement.
	plateauShare, plateauLeast, plateauWait = 3, 2, 5
)

// PlateauWait is after how many evaluations without a better one the rate of a plateau is halved.
func (c *Node) PlateauWait() int {
	if c.Patience == 0 {
		return plateauWait
	}
	return max(plateauLeast, c.Patience/plateauShare)
}

// Extends says whether a run may be given more epochs: not where the rate of each epoch depends on
// how many there are.
func (c *Node) Extends() bool {
	return c.LRSchedule != ScheduleCosine && c.LRSchedule != ScheduleStep
}

// Rate says what the learning rate is, in words.
func (c *Node) Rate() string {
	text := fmt.Sprintf("rate %g", c.LR)
	if c.Warmup > 0 {
		text += fmt.Sprintf(" after %d steps of warm-up", c.Warmup)
	}
	switch c.LRSchedule {
	case ScheduleCosine:
		text += fmt.Sprintf(", along a cosine to 0 in %d epochs", c.Epochs)
	case ScheduleStep:
		text += fmt.Sprintf(", a tenth from epoch %d, a hundredth from %d", (c.Epochs+1)/2+1,
			(3*c.Epochs+3)/4+1)
	case SchedulePlateau:
		text += fmt.Sprintf(", halved when val is no better %d times", c.PlateauWait())
	}
	return text
}
