package plan

import (
	"fmt"

	"gdb/internal/mem"
)

// TooSmallError says that a run does not fit in the memory it was given.
type TooSmallError struct {
	Memory int64
	Least  int64 // the smallest memory that would do, as far as is known
	// Nearest is the split that needs only Least, or nil where batches were not sampled.
	Nearest *Plan
	// Evaluates says that the run is an evaluation without training.
	Evaluates bool
}

// Error says how much memory is needed, and which settings lower that.
func (e *TooSmallError) Error() string {
	memory, least := mem.FormatSize(e.Memory), sizeUp(e.Least)
	switch {
	case e.Evaluates:
		return fmt.Sprintf("memory %s is too small to evaluate: it needs at least %s: raise "+
			"--memory", memory, least)
	case e.Nearest == nil:
		return fmt.Sprintf("memory %s is too small: this store needs at least %s, and room for "+
			"batches: raise --memory", memory, least)
	}
	return fmt.Sprintf("memory %s is too small: this run needs at least %s (%s): raise --memory, "+
		"or lower --batch, --fanout or --hidden", memory, least, e.Nearest)
}

// sizeUp writes a size of n bytes in MiB, rounded up.
func sizeUp(n int64) string { return fmt.Sprintf("%dMiB", (n+1<<20-1)>>20) }
