// Package classes numbers the classes of labels, in the order in which a store lists them.
package classes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/layout/ingest/badinput"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/text"
)

// classesMax bounds the classes: their names are kept in memory and in the catalog.
const classesMax = 1 << 20

const (
	// None is the number that stands for NoClass.
	None = math.MaxUint32
	// Unlabeled is the final number of a class that turned out to mean unlabeled.
	Unlabeled = math.MaxUint32 - 1
)

// ErrTargets says that labels that were taken for classes are numbers to predict.
var ErrTargets = errors.New("the labels are numbers with fractions")

// Table numbers the classes of labels in order of first appearance.
type Table struct {
	ints  map[int64]uint32
	texts map[string]uint32
}

// Of makes a table of the names that a source lists; nil for none.
func Of(names []string) *Table {
	t := &Table{ints: map[int64]uint32{}, texts: map[string]uint32{}}
	for i, name := range names {
		t.texts[name] = uint32(i)
	}
	return t
}

// Integer returns the number of row i's class; false if the row has no label.
func (t *Table) Integer(c *source.LabelChunk, i int) (uint32, bool, error) {
	class := c.Class[i]
	switch class {
	case source.Unlabeled:
		return 0, false, nil
	case source.NoClass:
		return None, true, nil
	}
	n, ok := t.ints[class]
	if !ok {
		n = uint32(len(t.ints))
		t.ints[class] = n
	}
	return n, true, t.check(c, i)
}

// Text is integer for named classes.
func (t *Table) Text(c *source.LabelChunk, i int) (uint32, bool, error) {
	if len(c.Text[i]) == 0 {
		return 0, false, nil
	}
	n, ok := t.texts[string(c.Text[i])]
	if !ok {
		n = uint32(len(t.texts))
		t.texts[string(c.Text[i])] = n
	}
	return n, true, t.check(c, i)
}

func (t *Table) check(c *source.LabelChunk, i int) error {
	if len(t.ints)+len(t.texts) <= classesMax {
		return nil
	}
	if numbers, fractions := t.Numbers(); numbers && fractions {
		return ErrTargets
	}
	return &badinput.Error{Where: c.Position(i),
		What: fmt.Sprintf("there are more than %d classes", classesMax),
		Do:   "is this the column of labels?"}
}

// Numbers reports whether all named classes are numbers, and whether one has a fraction.
func (t *Table) Numbers() (all, fractions bool) {
	for name := range t.texts {
		x, ok := text.ParseFloat([]byte(name))
		if !ok {
			return false, false
		}
		fractions = fractions || source.HasFraction(x)
	}
	return len(t.texts) > 0, fractions
}

// minusOne reports whether a named class means unlabeled: -1 among more than two numbers. (Two
// classes -1 and 1 are common.)
func (t *Table) minusOne(name string, numbers bool) bool {
	if !numbers || len(t.texts) <= 2 {
		return false
	}
	x, ok := text.ParseFloat([]byte(name))
	return ok && x == source.Unlabeled
}

// Sorted returns the names of the classes in their final order, and the final number of each
// class by its number of first appearance. Classes that are integers sort as numbers. unlabeled
// are the names that are no class.
func (t *Table) Sorted() (names []string, final []uint32, unlabeled []string) {
	final = make([]uint32, len(t.ints)+len(t.texts))
	for class := range t.ints {
		names = append(names, strconv.FormatInt(class, 10))
	}
	numbers, _ := t.Numbers()
	for class, n := range t.texts {
		if t.minusOne(class, numbers) {
			unlabeled, final[n] = append(unlabeled, class), Unlabeled
			continue
		}
		names = append(names, class)
	}
	slices.SortFunc(names, compareClasses(names))
	for i, name := range names {
		n, ok := t.texts[name]
		if !ok {
			class, _ := strconv.ParseInt(name, 10, 64) // it was formatted above
			n = t.ints[class]
		}
		final[n] = uint32(i)
	}
	return names, final, unlabeled
}

// compareClasses is the order of class names: numeric if all are integers.
func compareClasses(names []string) func(a, b string) int {
	for _, name := range names {
		if _, err := strconv.ParseInt(name, 10, 64); err != nil {
			return strings.Compare
		}
	}
	return func(a, b string) int {
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		if x != y {
			return map[bool]int{true: -1, false: 1}[x < y]
		}
		return strings.Compare(a, b) // "1" and "01"
	}
}
