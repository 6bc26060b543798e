// Package input reads what a user gives to be ingested, and has the errors that the user must mend:
// a wrong row, file or flag.
//
// OpenText reads rows of fields from text files in a stream: comma, tab or blank separated, plain,
// gzip, bzip2 or zstd. CSV, TSV, SNAP and OGB files are read with it. A TextReader parses a buffer
// of rows at a time, in a goroutine of its own that is one batch ahead of its caller, into one
// slice per wanted column. Text values are slices of the buffer. No memory is allocated per row; in
// all there are two buffers of 1 MiB (more only if one row is longer) and the columns of two
// batches.
package input

import (
	"fmt"
	"slices"
)

// Format says how a file is cut into fields.
type Format struct {
	// Delim separates fields; 0: any run of blanks and tabs does.
	Delim byte
	// Comment begins lines that are skipped; 0: none are.
	Comment byte
	// Quotes says that a field may be enclosed in double quotes (RFC 4180), in which a doubled one
	// stands for itself and the delimiter and line ends mean nothing.
	Quotes bool
	// Header says that the first row holds the names of the columns.
	Header bool
}

// Kind is what the fields of a column are read as.
type Kind uint8

// The kinds of columns.
const (
	// ID is an unsigned integer in canonical form: "7" and not "007" or "+7".
	ID Kind = iota
	// Key is a text that is not empty.
	Key
	// Text may be empty.
	Text
	// Integer is a signed 64-bit integer.
	Integer
	// Time is a time in seconds since 1970: an Integer, a number with a fraction, which is cut off,
	// or a date and time by ISO 8601, in UTC unless it says otherwise.
	Time
	// Float is a finite number.
	Float
	// Optional is a number, or NaN where the field is empty or says nan.
	Optional
)

// Column is a wanted column: which field of the row, and what it is.
type Column struct {
	Field int
	Kind  Kind
	Do    string // what to do about a field that is not of the kind; "" is not said
}

// Spec says what to read.
type Spec struct {
	Format
	// Width is the number of fields that every row must have.
	Width int
	// Names are those of the fields, for messages; nil where there are none.
	Names   []string
	Columns []Column
	// Vector are the fields of the Batch's Vector: finite numbers, or true and false as 1 and 0,
	// unless NaN is set.
	Vector []int
	NaN    bool
	// Missing are words that say, like an empty field, that a number or text is not known. With
	// Gaps a field of the Vector that is missing is NaN; else it is bad.
	Missing []string
	Gaps    bool
}

// name is how a message calls a field.
func (s *Spec) name(field int) string {
	if field < len(s.Names) && s.Names[field] != "" {
		return fmt.Sprintf("column %q", s.Names[field])
	}
	return fmt.Sprintf("field %d", field+1)
}

// isMissing says whether a field says that its value is not known.
func (s *Spec) isMissing(f []byte) bool {
	return len(f) == 0 || len(s.Missing) > 0 && slices.Contains(s.Missing, string(f))
}

// Values are the fields of one column, in the slice that its Kind is kept in.
type Values struct {
	IDs      []uint64  // ID
	Texts    [][]byte  // Key, Text
	Integers []int64   // Integer, Time
	Floats   []float32 // Float, Optional
	// Rounded are the numbers of a column of Floats that float32 does not hold, by row.
	Rounded []Rounded
}

// Truncate cuts the values to those of the first n rows.
func (v *Values) Truncate(n int) {
	v.IDs, v.Texts = v.IDs[:min(n, len(v.IDs))], v.Texts[:min(n, len(v.Texts))]
	v.Integers, v.Floats = v.Integers[:min(n, len(v.Integers))], v.Floats[:min(n, len(v.Floats))]
	for len(v.Rounded) > 0 && v.Rounded[len(v.Rounded)-1].Row >= n {
		v.Rounded = v.Rounded[:len(v.Rounded)-1]
	}
}

// Bad is a row that could not be read. It is in no column.
type Bad struct {
	Line     int64
	What, Do string
	// NotInteger says that the only thing wrong is that an ID is no integer.
	NotInteger bool
}

// Batch is a run of rows.
type Batch struct {
	File    string // that the rows are of
	Unit    string // of First and Lines: line, or row
	Rows    int
	First   int64    // line of the first row, from 1, or row, from 0
	Lines   []int64  // line of each row, or nil if they are consecutive
	Columns []Values // parallel to Spec.Columns
	Vector  []float32
	Bad     []Bad // rows left out, among those of this batch

	buf   []byte
	lines []int64 // kept for Lines
	err   error
}

// LineError is a wrong file.
type LineError struct {
	File     string
	Line     int64 // 0: not known
	What, Do string
}

// Error is one line: where, what, what to do.
func (e *LineError) Error() string {
	s := e.Where() + ": " + e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// Where names the file and line.
func (e *LineError) Where() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s line %d", e.File, e.Line)
}
