package run

import (
	"fmt"

	"gdb/train/setting"
)

const (
	// divergedTimes and divergedEpochs say when a loss has diverged: once it grew for
	// divergedEpochs epochs in a row, to at least divergedTimes the least loss of an epoch.
	divergedTimes, divergedEpochs = 100, 3
)

// Divergence watches the losses of epochs. A loss that is not a number is found by the step.
type Divergence struct {
	least, last float64
	grew, seen  int
}

// Add adds the loss of an epoch. It returns an error once the losses have diverged.
func (d *Divergence) Add(loss float64) error {
	if d.seen == 0 || loss < d.least {
		d.least = loss
	}
	if d.grew++; d.seen == 0 || loss <= d.last {
		d.grew = 0
	}
	d.seen++
	d.last = loss
	if d.grew < divergedEpochs || loss < divergedTimes*d.least || loss < divergedTimes {
		return nil
	}
	return fmt.Errorf("the loss has grown for %d epochs, to %.4g from %.4g: %w: "+
		"lower --lr, give --clip 1, or bring the features into one range (ingest with "+
		"--normalize zscore)", d.grew, loss, d.least, setting.ErrDiverged)
}
