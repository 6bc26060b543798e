// Package bug finds and reports mistakes of the program itself.
//
// Check and Mangle find them: they are compiled in with the build tag "invariants" and cost nothing
// without it, as the compiler drops a call guarded by the constant Checking.
//
// Catch decides what happens after a panic. In a program that uses gdb as a library, a panic ends
// the program with Go's report, as any does. The command gdb says instead that it met a bug, and
// what to send. A panic can be caught only in its own goroutine, so every goroutine defers Catch.
package bug

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

var handler atomic.Pointer[func(what any, stack []byte)]

// OnPanic makes Catch call report, which must not return: deferred calls must not free what other
// goroutines still use.
func OnPanic(report func(what any, stack []byte)) { handler.Store(&report) }

// Catch reports a panic of this goroutine, if OnPanic was called. It must be deferred.
func Catch() {
	report := handler.Load()
	if report == nil {
		return
	}
	if what := recover(); what != nil {
		(*report)(what, debug.Stack())
	}
}

// Check panics with "BUG: …" when ok is false and the binary was built with invariants. It is for
// mistakes of the program, never for bad input or failed I/O, which are errors.
func Check(ok bool, format string, args ...any) {
	if Checking && !ok {
		panic("BUG: " + fmt.Sprintf(format, args...))
	}
}

// Mangle fills a buffer that goes back to a pool with a pattern that is wrong as an id, a float
// and a length, so that a use after release is seen. It does nothing without invariants.
func Mangle(b []byte) {
	if !Checking {
		return
	}
	for i := range b {
		b[i] = 0xcd
	}
}
