// Package flagvalue has the values of flags that are neither words nor plain numbers.
package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/setting"
)

// Fanout is --fanout: numbers and all, with commas.
type Fanout []int

// String is the flag's value.
func (f *Fanout) String() string { return sample.FormatFanout(*f) }

// Set parses 10,5 or all,all.
func (f *Fanout) Set(s string) error {
	fanout, err := sample.ParseFanout(s)
	if err == nil {
		*f = fanout
	}
	return err
}

// Type names the value in help.
func (f *Fanout) Type() string { return "fanout" }

// SizeOrAuto is --neighbor-cache: auto or a size.
type SizeOrAuto int64

// String is the flag's value.
func (n *SizeOrAuto) String() string {
	if *n == setting.NeighborAuto {
		return "auto"
	}
	return strconv.FormatInt(int64(*n), 10)
}

// Set parses auto or a size.
func (n *SizeOrAuto) Set(text string) error {
	if text == "auto" {
		*n = setting.NeighborAuto
		return nil
	}
	size, err := mem.ParseSize(text)
	if err != nil {
		return fmt.Errorf("want auto, or a size: %w", err)
	}
	*n = SizeOrAuto(size)
	return nil
}

// Type names the value in help.
func (n *SizeOrAuto) Type() string { return "auto|SIZE" }

// CountOrAuto is a number of something that gdb chooses itself for auto, which is 0.
type CountOrAuto int

// String is the flag's value.
func (s *CountOrAuto) String() string {
	if *s == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*s))
}

// Set parses auto or a number.
func (s *CountOrAuto) Set(text string) error {
	if text == "auto" {
		*s = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("want auto, or a positive number")
	}
	*s = CountOrAuto(n)
	return nil
}

// Type names the value in help.
func (s *CountOrAuto) Type() string { return "auto|N" }

// Directions are the values of Direction; the first is the default.
var Directions = []string{"in", "both"}

// Direction is --direction: in is false, both is true.
type Direction bool

// String is the flag's value.
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
