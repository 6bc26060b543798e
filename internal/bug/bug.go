// Package bug is about mistakes of the program itself.
//
// Check and Mangle find them: they are compiled in with the build tag "invariants" and cost nothing
// without it, as the compiler drops a call guarded by the constant Checking.
//
// Catch says what becomes of a panic. In a program that uses gdb as a library a panic is one:
// it ends the program with Go's report. The command gdb says instead that it met a bug, and what to
// send. A panic can be caught only in the goroutine that it is in, so every goroutine defers Catch.
package bug

import (
	"runtime/debug"
	"sync/atomic"
)

var handler atomic.Pointer[func(what any, stack []byte)]

// OnPanic makes Catch call report, which does not return: what other goroutines work on must not be
// freed below them by deferred calls.
func OnPanic(report func(what any, stack []byte)) { handler.Store(&report) }

// Catch reports a panic of this goroutine, if OnPanic has said how; it is deferred.
func Catch() {
	report := handler.Load()
	if report == nil {
		return
	}
	if what := recover(); what != nil {
		(*report)(what, debug.Stack())
	}
}
