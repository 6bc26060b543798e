package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"gdb/internal/testgraph"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rogpeppe/go-internal/testscript"
)

// tests are the tests of this package, which have a directory for caches of their own: what one of
// them measured of a device is known to the others, as it is to the stores of a user.
type tests struct{ m *testing.M }

// Run runs them and returns the exit code.
func (all tests) Run() int {
	dir, err := os.MkdirTemp("", "gdb-tests")
	if err == nil {
		err = os.Setenv("XDG_CACHE_HOME", dir)
	}
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	return all.m.Run()
}

// TestMain makes this test binary serve as the command gdb in scripts.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"gdb":          func() { fixIdentity(); main() },
		"graphdb":      func() { fixIdentity(); main() },
		"gdb-panic":    panicAsTold,
		"gdb-in-group": gdbInGroup,
	})
}

// TestScripts runs testdata/*.txtar: whole command lines, with their output and exit codes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: func(e *testscript.Env) error {
		e.Setenv("XDG_CACHE_HOME", os.Getenv("XDG_CACHE_HOME"))
		return nil
	}, Cmds: map[string]func(
		ts *testscript.TestScript, neg bool, args []string){
		"exits": exits, "flip": flip, "cora": cora}})
}

// cora DIR: writes the arrays of the demo.
func cora(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cora DIR")
	}
	ts.Check(testgraph.WriteCora(vfs.Default, ts.MkAbs(args[0])))
}

// flip FILE OFFSET: changes one bit of a file.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	b[at] ^= 1
	ts.Check(os.WriteFile(name, b, 0o644))
}

// exits CODE COMMAND...: runs a command that must end with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = exitStatus(err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func exitStatus(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}
