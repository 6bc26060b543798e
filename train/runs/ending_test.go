package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestEnding: an interrupted run says what goes on from there, and causes are kept.
func TestEnding(t *testing.T) {
	for _, c := range []struct {
		cause        error
		status, word string
	}{{fmt.Errorf("step: %w", context.Canceled), "interrupted", "--resume r1"},
		{io.ErrUnexpectedEOF, "failed", "run r1"}} {
		status, err := Ending("r1", 3, 7, c.cause)
		if status != c.status ||
			!errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%v: %s, %v", c.cause, status, err)
		}
	}
}
