package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Idle are flags that change nothing without another one.
type Idle struct {
	Flags   []string
	Without string // what they need
	If      bool   // whether it is missing
}

// NoteIdle tells of each flag that was given and changes nothing, once.
func NoteIdle(a *App, given *pflag.FlagSet, idle []Idle) {
	told := map[string]bool{}
	for _, i := range idle {
		for _, flag := range i.Flags {
			if i.If && given.Changed(flag) && !told[flag] {
				told[flag] = true
				a.Note("--" + flag + " changes nothing without " + i.Without)
			}
		}
	}
}

// OnlyFor refuses flags that were given to a run of another task than the one that they are for.
func OnlyFor(task, run string, given *pflag.FlagSet, flags ...string) error {
	for _, name := range flags {
		if given.Changed(name) {
			return Usage(fmt.Errorf("--%s is for runs that predict %s, and %s does not: leave it "+
				"out", name, task, run))
		}
	}
	return nil
}
