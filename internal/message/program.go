package message

import (
	"slices"
	"strings"
)

// Program is the name that the program was called by. GNU's debugger is a gdb too, so this one may
// have been built as another. Only main sets it, before anything else runs.
var Program = "gdb"

// partNames are packages that put their names before errors.
var partNames = []string{"kv", "layout", "loader", "sample", "codec", "blockdev", "rowfile",
	"listfile"}

// Plain takes the names of the program's parts out of a message of several errors, outermost first:
// they say nothing to a user.
func Plain(message string) string {
	errs := strings.Split(message, ": ")
	last := len(errs) - 1
	return strings.Join(append(slices.DeleteFunc(errs[:last:last], func(name string) bool {
		return slices.Contains(partNames, name)
	}), errs[last]), ": ")
}
