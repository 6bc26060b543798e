package runs

import (
	"context"
	"errors"
	"fmt"
)

// Ending returns the status of a run whose training ended with an error, and the error to show to
// its user. For an interrupted run that error says how to go on. epoch counts from 1, and batches
// is how many of its batches were done.
func Ending(run string, epoch, batches uint64, err error) (status string, told error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "interrupted", fmt.Errorf("train: run %s was interrupted in epoch %d after %d "+
			"batches; --resume %s goes on from there: %w", run, epoch, batches, run, err)
	}
	return "failed", fmt.Errorf("train: run %s: %w", run, err)
}
