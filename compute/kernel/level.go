package kernel

import (
	"fmt"
	"os"
	"strings"
)

var chosen, errChosen = choose(os.Getenv("GDB_KERNEL"), supported())

func init() { active.Store(opsOf(chosen)) }

// Chosen returns the level in use: the best one of this CPU, or the lower one that the environment
// variable GDB_KERNEL names. The error says that GDB_KERNEL names no level, or one that this CPU
// lacks; the best is in use then.
func Chosen() (Level, error) { return chosen, errChosen }

// choose returns the level of a name, which may be empty.
func choose(name string, best Level) (Level, error) {
	if name == "" {
		return best, nil
	}
	for l := range Level(len(levelNames)) {
		if levelNames[l] != name {
			continue
		}
		if l > best {
			return best, fmt.Errorf("kernel: GDB_KERNEL=%s: this CPU has no more than %s", l, best)
		}
		return l, nil
	}
	return best, fmt.Errorf("kernel: GDB_KERNEL=%q: known are %s", name,
		strings.Join(levelNames, ", "))
}
