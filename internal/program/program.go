// Package program has the name of the program, for messages that say which command to run.
package program

import (
	"slices"
	"strings"
)

// Name is the name that the program was called by. GNU's debugger is a gdb too, so this one may
// have been built as another. Only main sets it, before anything else runs.
var Name = "gdb"

// parts are packages that put their names before errors.
var parts = []string{"kv", "layout", "loader", "sample", "codec", "blockdev", "rowfile", "listfile"}

// Plain takes the names of the program's parts out of a message of several errors, outermost first:
// they say nothing to a user.
func Plain(message string) string {
	errs := strings.Split(message, ": ")
	last := len(errs) - 1
	return strings.Join(append(slices.DeleteFunc(errs[:last:last], func(name string) bool {
		return slices.Contains(parts, name)
	}), errs[last]), ": ")
}
