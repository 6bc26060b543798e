//go:build !unix

package main

import (
	"io"

	"gdb/shell"
)

// newTerminal leaves editing to the terminal where it cannot be waited for.
func newTerminal(io.Reader, io.Writer) shell.Terminal { return nil }
