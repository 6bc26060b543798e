package message

import (
	"slices"
	"strings"
)

// Program is the name by which the program was called. GNU's debugger is called gdb too, so this
// one may have been built under another name. Only main sets it, before anything else runs.
var Program = "gdb"

// partNames are packages that put their names before their errors.
var partNames = []string{"kv", "layout", "loader", "sample", "codec", "blockdev", "rowfile",
	"listfile"}

// Plain removes the names of the program's packages from a message of nested errors, outermost
// first, since they mean nothing to a user.
func Plain(message string) string {
	errs := strings.Split(message, ": ")
	last := len(errs) - 1
	return strings.Join(append(slices.DeleteFunc(errs[:last:last], func(name string) bool {
		return slices.Contains(partNames, name)
	}), errs[last]), ": ")
}
