// Package program has the name of the program, for messages that say which command to run.
package program

// Name is the name that the program was called by. GNU's debugger is a gdb too, so this one may
// have been built as another. Only main sets it, before anything else runs.
var Name = "gdb"
