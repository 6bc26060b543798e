package columns

import (
	"fmt"
	"strings"

	"gdb/kv"
)

// Encoders say how the features of all types are made; a run keeps them.
type Encoders struct {
	Types []Type `json:"types"`
}

// Type says how the rows of one type of nodes are made: first the vectors that the store has, then
// the values of each column.
type Type struct {
	Name    string   `json:"name"`
	Vectors []Vector `json:"vectors,omitempty"`
	Columns []Column `json:"columns,omitempty"`
	// Left names the columns that are not features, each with the reason.
	Left []string `json:"left,omitempty"`
}

// Vector is a list of numbers of the stored features of a type.
type Vector struct {
	Name  string `json:"name"`
	First int    `json:"first"` // value of the stored row
	Dim   int    `json:"dim"`
}

// Kind is what a column is encoded as.
type Kind string

// The kinds. All but words and hashed texts have one value more, 1 for a row without a value, where
// the column has such rows.
const (
	// Number is the difference to the mean in standard deviations.
	Number Kind = "number"
	// Truth is 1 for true.
	Truth Kind = "truth"
	// Words are a value for each word, 1 for the row's own. Others, and rows without one, have 0 in
	// all.
	Words Kind = "words"
	// Hashed are words in as many values as Buckets, by a hash: several may share one.
	Hashed Kind = "hashed"
	// Text is the words of a text and the runs of three letters in it, in as many values as
	// Buckets by a hash with a sign, scaled to length 1.
	Text Kind = "text"
	// Day and Time are a number, and the sine and cosine of the part of the year and of the week,
	// and of Time of the day too, that has passed.
	Day  Kind = "day"
	Time Kind = "time"
)

// Column says how a column is encoded.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Gaps says that rows may have no value.
	Gaps bool `json:"gaps,omitempty"`
	// Mean and Deviation are measured on the rows that are trained on, of numbers and times.
	Mean      float64 `json:"mean,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
	// Words are the words, the most frequent first.
	Words   []string `json:"words,omitempty"`
	Buckets int      `json:"buckets,omitempty"`
}

// cyclesOf are how many values the cycles of a kind have.
var cyclesOf = map[Kind]int{Day: 4, Time: 6}

// Dim is how many values a row has of the column.
func (c *Column) Dim() int {
	switch c.Kind {
	case Words:
		return len(c.Words)
	case Hashed, Text:
		return c.Buckets
	}
	dim := 1 + cyclesOf[c.Kind]
	if c.Gaps {
		dim++
	}
	return dim
}

// Dim is how many values a row of the type has.
func (t *Type) Dim() int {
	dim := 0
	for i := range t.Vectors {
		dim += t.Vectors[i].Dim
	}
	for i := range t.Columns {
		dim += t.Columns[i].Dim()
	}
	return dim
}

// dims are the widths of the rows of all types, and firsts their first nodes.
func (e *Encoders) dims(m *kv.Meta) (dims []int, firsts []uint64) {
	for i := range e.Types {
		dims = append(dims, e.Types[i].Dim())
		firsts = append(firsts, m.NodeTypes[i].First)
	}
	return dims, firsts
}

// String tells what a type's rows are made of: a line for people.
func (t *Type) String() string {
	var parts []string
	for _, v := range t.Vectors {
		parts = append(parts, fmt.Sprintf("%s[%d]", v.Name, v.Dim))
	}
	for i := range t.Columns {
		parts = append(parts, t.Columns[i].String())
	}
	if len(parts) == 0 {
		parts = append(parts, "none")
	}
	line := fmt.Sprintf("features of %s: %s: %d values", t.Name, strings.Join(parts, ", "), t.Dim())
	if len(t.Left) > 0 {
		line += "; without " + strings.Join(t.Left, ", ")
	}
	return line
}

// String tells how the column is encoded.
func (c *Column) String() string {
	how := string(c.Kind)
	switch c.Kind {
	case Words:
		how = fmt.Sprintf("%d words", len(c.Words))
	case Hashed, Text:
		how = fmt.Sprintf("%s to %d", c.Kind, c.Buckets)
	}
	if c.Gaps && c.Kind != Words && c.Kind != Hashed && c.Kind != Text {
		how += ", gaps"
	}
	return fmt.Sprintf("%s (%s)", c.Name, how)
}
