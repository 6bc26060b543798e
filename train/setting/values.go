package setting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/layout/ingest/input"
	"gdb/sample"
)

// Value is a value as a flag takes it.
type Value interface {
	String() string
	Set(text string) error
	// Type names the value in help.
	Type() string
}

// Kind makes the value behind pointers to fields of Node or of Link.
type Kind func(fields []any) Value

// parsed is a value that is read and written by functions.
type parsed[T any] struct {
	to    *T
	name  string
	write func(v T) string
	read  func(text string) (T, error)
}

func (p *parsed[T]) String() string { return p.write(*p.to) }
func (p *parsed[T]) Type() string   { return p.name }

func (p *parsed[T]) Set(text string) error {
	v, err := p.read(text)
	if err == nil {
		*p.to = v
	}
	return err
}

// plain reads and writes a field as its type says.
func plain(fields []any) Value {
	switch to := fields[0].(type) {
	case *string:
		return &parsed[string]{to, "string", func(v string) string { return v },
			func(s string) (string, error) { return s, nil }}
	case *bool:
		return &parsed[bool]{to, "bool", strconv.FormatBool, strconv.ParseBool}
	case *int:
		return &parsed[int]{to, "int", strconv.Itoa, parseInt}
	case *uint64:
		return &parsed[uint64]{to, "uint", func(v uint64) string {
			return strconv.FormatUint(v, 10)
		}, func(s string) (uint64, error) { return strconv.ParseUint(s, 0, 64) }}
	case *float64:
		return &parsed[float64]{to, "float", formatFloat,
			func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }}
	case *int64:
		return &parsed[int64]{to, "string", mem.FormatSize, mem.ParseSize}
	case *[]int:
		return &parsed[[]int]{to, "sizes", sample.FormatFanout, parseSizes}
	}
	return nil
}

func parseInt(s string) (int, error) {
	n, err := strconv.ParseInt(s, 0, strconv.IntSize)
	return int(n), err
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// parseSizes parses 512,512.
func parseSizes(s string) (sizes []int, err error) {
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > math.MaxInt32 {
			return nil, fmt.Errorf("layer size %q: give positive numbers, one a hop, such as "+
				"512,512", s)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// words are words with commas between.
func words(fields []any) Value {
	return &parsed[[]string]{fields[0].(*[]string), "names", func(v []string) string {
		return strings.Join(v, ",")
	}, func(s string) (all []string, err error) {
		for word := range strings.SplitSeq(s, ",") {
			if word = strings.TrimSpace(word); word == "" || slices.Contains(all, word) {
				return nil, fmt.Errorf("%q names nothing, or something twice, between commas", s)
			}
			all = append(all, word)
		}
		return all, nil
	}}
}

// Fanout is numbers and all, with commas: 10,5 or all,all.
func Fanout(to *[]int) Value {
	return &parsed[[]int]{to, "fanout", sample.FormatFanout, sample.ParseFanout}
}

// fanout reads a fanout; links record its text, nodes its numbers.
func fanout(fields []any) Value {
	if to, ok := fields[0].(*string); ok {
		return &parsed[string]{to, "fanout", func(v string) string { return v },
			func(s string) (string, error) { return s, nil }}
	}
	return fanoutValue{fields[0].(*[]int), fields[1].(*[]sample.RelationFanout)}
}

// fanoutValue is fanouts of all relations, or by relation.
type fanoutValue struct {
	fanout *[]int
	by     *[]sample.RelationFanout
}

// String is the flag's value.
func (f fanoutValue) String() string { return sample.FormatFanoutBy(*f.fanout, *f.by) }

// Set takes what sample.ParseFanoutBy reads.
func (f fanoutValue) Set(text string) error {
	fanout, by, err := sample.ParseFanoutBy(text)
	if err == nil {
		*f.fanout, *f.by = fanout, by
	}
	return err
}

// Type is shown in help.
func (f fanoutValue) Type() string { return "fanout" }

// auto is a number that the word auto stands for.
type auto[T int | int64 | float64] struct {
	value T
	name  string
	write func(v T) string
	read  func(text string) (T, error)
}

// kind makes the value of a field.
func (a auto[T]) kind(fields []any) Value {
	return &parsed[T]{fields[0].(*T), a.name, func(v T) string {
		if v == a.value {
			return "auto"
		}
		return a.write(v)
	}, func(s string) (T, error) {
		if s == "auto" {
			return a.value, nil
		}
		return a.read(s)
	}}
}

// countOrAuto is a number of something that gdb chooses itself for auto, which is 0.
var countOrAuto = auto[int]{0, "auto|N", strconv.Itoa, func(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, errors.New("want auto, or a positive number")
	}
	return n, nil
}}.kind

// sizeOrAuto is a size that gdb chooses itself for auto.
var sizeOrAuto = auto[int64]{NeighborAuto, "auto|SIZE", mem.FormatSize,
	func(s string) (int64, error) {
		n, err := mem.ParseSize(s)
		if err != nil {
			return 0, fmt.Errorf("want auto, or a size: %w", err)
		}
		return n, nil
	}}.kind

// sizeOrRest is a size, or auto for what there is room for, which is 0.
var sizeOrRest = auto[int64]{0, "string", mem.FormatSize, mem.ParseSize}.kind

// sizeOrNone is a size that may be left out.
func sizeOrNone(fields []any) Value {
	return &parsed[int64]{fields[0].(*int64), "string", func(v int64) string {
		if v == 0 {
			return ""
		}
		return mem.FormatSize(v)
	}, mem.ParseSize}
}

// shareOrAuto is a share that gdb chooses itself for auto; checks say what it may be.
var shareOrAuto = auto[float64]{DropoutAuto, "auto|SHARE", formatFloat,
	func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v == DropoutAuto {
			return 0, fmt.Errorf("%q: want auto, or a number from 0 to below 1", s)
		}
		return v, nil
	}}.kind

// countOrAll is a number of entities; all is NegativesAll.
func countOrAll(fields []any) Value {
	return &parsed[int]{fields[0].(*int), "all|N", func(v int) string {
		if v == NegativesAll {
			return "all"
		}
		return strconv.Itoa(v)
	}, func(s string) (int, error) {
		if s == "all" {
			return NegativesAll, nil
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return 0, errors.New("want all, or a number from 1 on")
		}
		return v, nil
	}}
}

// optionalShare is a share that may be left out.
func optionalShare(fields []any) Value {
	return &parsed[*float64]{fields[0].(**float64), "float", func(v *float64) string {
		if v == nil {
			return ""
		}
		return formatFloat(*v)
	}, func(s string) (*float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no share: give a number from 0 to below 1", s)
		}
		return &v, nil
	}}
}

// optionalTime is a time of edges that may be left out: an integer, or what ingest takes for one.
func optionalTime(fields []any) Value {
	return &parsed[*int64]{fields[0].(**int64), "time", func(v *int64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatInt(*v, 10)
	}, func(s string) (*int64, error) {
		v, err := parseTime(s)
		return &v, err
	}}
}

// parseTime reads a time of edges as ingest does.
func parseTime(s string) (int64, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		var ok bool
		if v, ok = input.ParseTime([]byte(s)); !ok {
			return 0, fmt.Errorf("%q is no time: give an integer as it was ingested, or a date "+
				"such as 2024-05-31 or 2024-05-31T12:00:00Z", s)
		}
	}
	return v, nil
}

// Check is what a number must be.
type Check struct {
	fits func(v float64) bool
	want string
}

// atLeast wants a number from least on.
func atLeast(least int) *Check {
	return &Check{func(v float64) bool { return v >= float64(least) },
		fmt.Sprintf("at least %d", least)}
}

// between wants a number from least to most.
func between(least, most int) *Check {
	return &Check{func(v float64) bool { return v >= float64(least) && v <= float64(most) },
		fmt.Sprintf("%d to %d", least, most)}
}

var (
	positive = &Check{func(v float64) bool { return v > 0 && !math.IsInf(v, 0) },
		"a positive number"}
	aShare      = &Check{func(v float64) bool { return v >= 0 && v <= 1 }, "from 0 to 1"}
	notNegative = &Check{func(v float64) bool { return v >= 0 && !math.IsInf(v, 0) },
		"0 or a positive number"}
	share = &Check{func(v float64) bool { return v >= 0 && v < 1 }, "a number from 0 to below 1"}
)

// orAuto returns a check that the number for auto passes too.
func (c *Check) orAuto(value float64) *Check {
	return &Check{func(v float64) bool { return v == value || c.fits(v) }, c.want + ", or auto"}
}

// saying returns the check with other words for what is wanted.
func (c *Check) saying(want string) *Check { return &Check{c.fits, want} }
