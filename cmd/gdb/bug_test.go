package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gdb/compute/kernel"
	"gdb/internal/bug"
)

// panicAsTold is a command that goes wrong as gdb would: in its first goroutine, or in a helper of
// a kernel.
func panicAsTold() {
	bug.OnPanic(reportBug)
	defer bug.Catch()
	if os.Args[1] == "helper" {
		kernel.NewPool(4).Run(4, func(int) { panic("broken helper") })
	}
	var none []int
	none[len(os.Args)]++
}

// TestPanicIsReported: a panic is said to be a bug, with what to send, and is no exit 2.
func TestPanicIsReported(t *testing.T) {
	for where, want := range map[string]string{"helper": "broken helper",
		"here": "index out of range"} {
		out, err := exec.Command("gdb-panic", where).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
			t.Errorf("%s: %v, want exit %d", where, err, exitFailed)
		}
		for _, part := range []string{"this is a bug in gdb", want, "gdb " + version, "goroutine"} {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s: no %q in\n%s", where, part, out)
			}
		}
	}
}
