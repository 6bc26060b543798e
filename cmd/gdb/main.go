// Command gdb stores graphs that do not fit in memory and trains graph neural networks on them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gdb/blockdev"
)

func main() {
	blockdev.RaiseGOMAXPROCS()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdStreams())
	stop()
	os.Exit(code)
}
