package steps

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// classesMax bounds the classes: their names are kept in memory and in the catalog.
const classesMax = 1 << 20

const (
	// ClassNone is the number that stands for NoClass.
	ClassNone = math.MaxUint32
	// ClassUnlabeled is the final number of a class that turned out to mean unlabeled.
	ClassUnlabeled = math.MaxUint32 - 1
)

// ErrTargets says that labels that were taken for classes are numbers to predict.
var ErrTargets = errors.New("the labels are numbers with fractions")

// ClassTable numbers the classes of labels in order of first appearance.
type ClassTable struct {
	listed bool // the names came first, and classes that are numbers are places among them
	ints   map[int64]uint32
	texts  map[string]uint32
	// negative is the first name that, as a number, is negative and not one for unlabeled.
	negative struct{ name, where string }
}

// NewClassTable makes a table of the names that a source lists; nil for none.
func NewClassTable(names []string) *ClassTable {
	t := &ClassTable{listed: names != nil, ints: map[int64]uint32{}, texts: map[string]uint32{}}
	for i, name := range names {
		t.texts[name] = uint32(i)
	}
	return t
}

// Integer returns the number of row i's class; false if the row has no label.
func (t *ClassTable) Integer(c *source.LabelChunk, i int) (uint32, bool, error) {
	class := c.Class[i]
	switch class {
	case source.Unlabeled:
		return 0, false, nil
	case source.NoClass:
		return ClassNone, true, nil
	}
	if t.listed {
		return uint32(class), true, nil
	}
	n, ok := t.ints[class]
	if !ok {
		n = uint32(len(t.ints))
		t.ints[class] = n
	}
	return n, true, t.check(c, i)
}

// Text returns the number of the class that row i names; false if the row has no label.
func (t *ClassTable) Text(c *source.LabelChunk, i int) (uint32, bool, error) {
	if len(c.Text[i]) == 0 {
		return 0, false, nil
	}
	n, ok := t.texts[string(c.Text[i])]
	if !ok {
		n = uint32(len(t.texts))
		t.texts[string(c.Text[i])] = n
		name := string(c.Text[i])
		if name[0] == '-' && t.negative.name == "" && !meansZeroOrUnlabeled(name) {
			t.negative.name, t.negative.where = name, c.Position(i)
		}
	}
	return n, true, t.check(c, i)
}

func (t *ClassTable) check(c *source.LabelChunk, i int) error {
	if len(t.ints)+len(t.texts) <= classesMax {
		return nil
	}
	if numbers, fractions := t.Numbers(); numbers && fractions {
		return ErrTargets
	}
	return input.Wrong(c.Position(i), "is this the column of labels?",
		"there are more than %d classes", classesMax)
}

// Numbers reports whether all named classes are numbers, and whether one has a fraction.
func (t *ClassTable) Numbers() (all, fractions bool) {
	for name := range t.texts {
		x, ok := input.ParseFloat([]byte(name))
		if !ok {
			return false, false
		}
		fractions = fractions || source.HasFraction(x)
	}
	return len(t.texts) > 0, fractions
}

// wholeName returns a number without a fraction, such as 1.0 or 1e0, as an integer is written; name
// itself if it is none, or written as an integer: 007 may be a code.
func wholeName(name string) string {
	if !strings.ContainsAny(name, ".eE+") && name != "-0" {
		return name
	}
	x, err := strconv.ParseFloat(name, 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return name
	}
	return strconv.FormatInt(int64(x), 10)
}

// ClassOrder is the classes in their final order.
type ClassOrder struct {
	Names []string // as they were given; of several forms of a number, as an integer
	// Final is the number of each class by its number of first appearance, or Unlabeled.
	Final []uint32
	// Unlabeled are names that are no class, and Same forms of numbers that are one class.
	Unlabeled, Same []string
}

// unlabeledNames are the numbers that mean unlabeled in every source: -1, and what PyTorch's losses
// ignore.
var unlabeledNames = []string{strconv.Itoa(source.Unlabeled), strconv.Itoa(source.Ignored)}

// meansZeroOrUnlabeled reports whether a number with a minus sign is no negative class.
func meansZeroOrUnlabeled(name string) bool {
	whole := wholeName(name)
	return whole[0] != '-' || slices.Contains(unlabeledNames, whole)
}

// Sorted orders the classes: those that are integers as numbers. Numbers that are equal, 1 and 1.0,
// are one class. -1 and -100 mean unlabeled, but where -1 and 1 are all labels, and any other
// negative number among them is an error.
func (t *ClassTable) Sorted() (*ClassOrder, error) {
	o := &ClassOrder{Final: make([]uint32, len(t.ints)+len(t.texts))}
	forms := map[string][]string{} // by the name that they share
	for class := range t.ints {
		name := strconv.FormatInt(class, 10)
		forms[name] = []string{name}
	}
	numbers, _ := t.Numbers()
	for class := range t.texts {
		name := class
		if numbers {
			name = wholeName(class)
		}
		forms[name] = append(forms[name], class)
	}
	_, minus := forms["-1"]
	_, one := forms["1"]
	signs := minus && one && len(forms) == 2
	if numbers && t.negative.name != "" {
		return nil, input.Wrong(t.negative.where, "number the classes from 0 on, or write them "+
			"as words; -1 and -100 are unlabeled", "label %s is negative", t.negative.name)
	}
	for name, of := range forms {
		if numbers && !signs && slices.Contains(unlabeledNames, name) {
			o.Unlabeled = append(o.Unlabeled, of...)
			for _, class := range of {
				o.Final[t.texts[class]] = ClassUnlabeled
			}
			delete(forms, name)
		}
	}
	t.place(o, forms)
	return o, nil
}

// place numbers the classes, whose forms are given by the name that they share.
func (t *ClassTable) place(o *ClassOrder, forms map[string][]string) {
	shared := slices.Collect(maps.Keys(forms))
	slices.SortFunc(shared, compareClasses(shared))
	for i, name := range shared {
		of := forms[name]
		if len(of) > 1 {
			slices.Sort(of)
			o.Same = append(o.Same, strings.Join(of, ", "))
		} else {
			name = of[0]
		}
		o.Names = append(o.Names, name)
		for _, class := range of {
			n, ok := t.texts[class]
			if !ok {
				v, _ := strconv.ParseInt(class, 10, 64) // it was formatted above
				n = t.ints[v]
			}
			o.Final[n] = uint32(i)
		}
	}
	slices.Sort(o.Unlabeled)
}

// compareClasses returns the order of class names: numeric if all are integers.
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
