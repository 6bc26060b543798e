package cli

import (
	"errors"
	"slices"
	"strings"
)

// Directions are the values of Direction; the first is the default.
var Directions = []string{"in", "both"}

// Direction is --direction: in is false, both is true.
type Direction bool

// String returns the flag's value.
func (d *Direction) String() string {
	if *d {
		return "both"
	}
	return "in"
}

// Set parses in or both.
func (d *Direction) Set(s string) error {
	if !slices.Contains(Directions, s) {
		return errors.New("want " + strings.Join(Directions, " or "))
	}
	*d = s == "both"
	return nil
}

// Type names the value in help.
func (d *Direction) Type() string { return "string" }
