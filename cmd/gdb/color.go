package main

import (
	"os"

	"golang.org/x/term"
)

// colored reports whether color may be written to a stream: --color decides, and with auto it must
// be a terminal that knows colors, and NO_COLOR must not be set.
func (a *app) colored(tty bool) bool {
	if a.Color != "auto" {
		return a.Color == "always"
	}
	return tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// width returns the columns of the terminal that results go to, 0 if they go elsewhere.
func (a *app) width() int {
	f, ok := a.Out.(*os.File)
	if !ok || !a.OutTTY {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0 // a terminal without a size fits anything
	}
	return columns
}
