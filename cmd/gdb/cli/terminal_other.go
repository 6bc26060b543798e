//go:build !unix

package cli

import (
	"io"

	"gdb/shell"
)

// NewTerminal leaves editing to the terminal where it cannot be waited for.
func NewTerminal(io.Reader, io.Writer) shell.Terminal { return nil }
