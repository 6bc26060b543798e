package search

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gdb/internal/rng"
)

// Space is the settings that are searched, each with its values.
type Space []Dimension

// Dimension is a setting with the values that trials may have: some, or a range of numbers.
type Dimension struct {
	Name   string
	Values []string // nil for a range
	// Low and High are the ends of a range, both in it. Whole is for whole numbers.
	Low, High float64
	Whole     bool
}

// Value is a setting of a trial, as a flag takes it.
type Value struct{ Name, Text string }

// Trial is what a trial has of a space: a value of each dimension, in their order.
type Trial []Value

// String returns NAME=VALUE of all, with spaces between.
func (t Trial) String() string {
	var all []string
	for _, v := range t {
		all = append(all, v.Name+"="+v.Text)
	}
	return strings.Join(all, " ")
}

// grammar ends errors of Parse.
const grammar = "want NAME=V1,V2 (| between values with commas) or NAME=LOW..HIGH, and ; between " +
	"settings: hidden=64,256;lr=1e-3..1e-1"

// Parse reads settings with their values, such as hidden=64,256;lr=1e-3..1e-1;fanout=10,10|5,5.
func Parse(text string) (Space, error) {
	var s Space
	for part := range strings.SplitSeq(text, ";") {
		name, values, ok := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.TrimLeft(strings.TrimSpace(name), "-")
		if !ok || name == "" || strings.TrimSpace(values) == "" {
			return nil, fmt.Errorf("%q: %s", part, grammar)
		}
		for _, other := range s {
			if other.Name == name {
				return nil, fmt.Errorf("%s is there twice: give all its values at once", name)
			}
		}
		d, err := parseValues(strings.TrimSpace(values))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.Name = name
		s = append(s, d)
	}
	return s, nil
}

func parseValues(text string) (d Dimension, err error) {
	if low, high, ok := strings.Cut(text, ".."); ok {
		return parseRange(low, high)
	}
	between := ","
	if strings.Contains(text, "|") {
		between = "|"
	}
	for v := range strings.SplitSeq(text, between) {
		v = strings.TrimSpace(v)
		if v == "" {
			return d, fmt.Errorf("%q has an empty value: %s", text, grammar)
		}
		for _, other := range d.Values {
			if other == v {
				return d, fmt.Errorf("the value %s is there twice", v)
			}
		}
		d.Values = append(d.Values, v)
	}
	return d, nil
}

// parseRange reads the ends of a range. It is of whole numbers if both are written as such.
func parseRange(low, high string) (d Dimension, err error) {
	_, first := strconv.ParseInt(low, 10, 64)
	_, second := strconv.ParseInt(high, 10, 64)
	d.Whole = first == nil && second == nil
	d.Low, first = strconv.ParseFloat(low, 64)
	d.High, second = strconv.ParseFloat(high, 64)
	if first != nil || second != nil || !(d.Low < d.High) || math.IsInf(d.High-d.Low, 0) {
		return d, fmt.Errorf("%s..%s is no range of numbers, the lower one first", low, high)
	}
	return d, nil
}

// mostCombinations bounds the combinations of listed values.
const mostCombinations = 1 << 40

// combinations returns how many combinations of listed values there are, and whether no dimension
// is a range.
func (s Space) combinations() (n uint64, listed bool, err error) {
	n, listed = 1, true
	for _, d := range s {
		if d.Values == nil {
			listed = false
			continue
		}
		if n *= uint64(len(d.Values)); n > mostCombinations {
			return 0, false, errors.New("there are over 2^40 combinations: leave values out")
		}
	}
	return n, listed, nil
}

// Trials draws n trials: of listed values combinations in a random order, none twice while there
// are others, and of each range a number of every n-th part of it, in a random order too. Where all
// values are listed and there are no more than n combinations, it returns each of them once.
func (s Space) Trials(n int, seed uint64) ([]Trial, error) {
	combos, listed, err := s.combinations()
	if err != nil {
		return nil, err
	}
	if listed && combos < uint64(n) {
		n = int(combos)
	}
	order := rng.NewPermutation(combos, rng.Key(seed, 0))
	trials := make([]Trial, n)
	for i := range trials {
		combo := order.At(uint64(i) % combos)
		for k, d := range s {
			text := ""
			if d.Values != nil {
				text = d.Values[combo%uint64(len(d.Values))]
				combo /= uint64(len(d.Values))
			} else {
				key := rng.Key(seed, uint64(k)+1)
				part := rng.NewPermutation(uint64(n), key).At(uint64(i))
				text = d.at((float64(part) + rng.Unit(rng.Sub(key, uint64(i)))) / float64(n))
			}
			trials[i] = append(trials[i], Value{d.Name, text})
		}
	}
	return trials, nil
}

const (
	// logarithmic is how many times the low end of a range its high end is at least, for values to
	// be drawn evenly by their logarithms.
	logarithmic = 10
	// digits is how many digits drawn numbers have.
	digits = 3
)

// at returns the value at x of a range, which is between 0 and 1.
func (d Dimension) at(x float64) string {
	low, high := d.Low, d.High
	if d.Whole { // each number has a part of its own
		low, high = low-0.5, high+0.5
	}
	v := low + x*(high-low)
	if d.Low > 0 && d.High >= logarithmic*d.Low {
		v = low * math.Pow(high/low, x)
	}
	if d.Whole {
		return strconv.FormatFloat(min(max(math.Round(v), d.Low), d.High), 'f', 0, 64)
	}
	text := strconv.FormatFloat(v, 'g', digits, 64)
	if short, err := strconv.ParseFloat(text, 64); err != nil || short < d.Low || short > d.High {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return text
}
