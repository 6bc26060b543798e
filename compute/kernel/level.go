package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

var chosen, errChosen = choose(os.Getenv("GDB_KERNEL"), supported())

func init() { active.Store(opsOf(chosen)) }

// Chosen returns the level in use: the best one of this CPU, or the lower one that the environment
// variable GDB_KERNEL names. The error says that GDB_KERNEL names no level, or one that this CPU
// lacks; the best is in use then.
func Chosen() (Level, error) { return chosen, errChosen }

// choose returns the level of a name, which may be empty, out of those of this CPU, whose best one
// is last.
func choose(name string, own []Level) (Level, error) {
	best := own[len(own)-1]
	if name == "" {
		return best, nil
	}
	at := slices.Index(levelNames, name)
	if at < 0 {
		return best, fmt.Errorf("kernel: GDB_KERNEL=%q: known are %s", name,
			strings.Join(levelNames, ", "))
	}
	if !slices.Contains(own, Level(at)) {
		return best, fmt.Errorf("kernel: GDB_KERNEL=%s: this CPU has no more than %s", name, best)
	}
	return Level(at), nil
}
