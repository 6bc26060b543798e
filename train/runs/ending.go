package runs

import (
	"context"
	"errors"
	"fmt"
)

// Ending is the status of a run whose training ended with an error, in an epoch (from 1 on) after
// some of its batches, and the error as its user is told it: of one that was interrupted, with what
// goes on from there.
func Ending(run string, epoch, batches uint64, err error) (status string, told error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "interrupted", fmt.Errorf("train: run %s was interrupted in epoch %d after %d "+
			"batches; --resume %s goes on from there: %w", run, epoch, batches, run, err)
	}
	return "failed", fmt.Errorf("train: run %s: %w", run, err)
}
