// Command gdb stores graphs that do not fit in memory and trains graph neural networks on them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/compute/kernel/bf16"
	"gdb/internal/bug"
	"gdb/internal/message"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func main() {
	message.Program = nameOf(os.Args[0])
	bug.OnPanic(reportBug)
	defer bug.Catch()
	blockdev.RaiseGOMAXPROCS()
	if dir := cli.ProfilesDir(); dir != "" {
		bf16.KeepWith(bf16.RatesIn(vfs.Default, dir))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], cli.StdStreams())
	stop()
	os.Exit(code)
}

// reportBug ends the process after a panic: it says that gdb is wrong, not the user, and what to
// send. The exit code is 1, as for any failure: 2 would mean a wrong command line.
func reportBug(what any, stack []byte) {
	fmt.Fprintf(os.Stderr, `%s: this is a bug in gdb, and no mistake of yours: %v
Please report it with all these lines, and with the input or the store if you can
share it.
gdb %s, %s, %s/%s: %s

%s`, message.Program, what, version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.Join(append([]string{message.Program}, os.Args[1:]...), " "), stack)
	os.Exit(exitFailed)
}
