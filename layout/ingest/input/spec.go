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
	"math"
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
	// Time is a time in seconds since 1970: a signed 64-bit integer, a number with a fraction,
	// which is cut off, or a date and time by ISO 8601, in UTC unless it says otherwise.
	Time
	// Float is a finite number.
	Float
	// Optional is a number, or NaN where the field is empty or says nan.
	Optional
	// Moment is a time in microseconds since 1970, of a column of times, or NoMoment where it is
	// missing. Text is not read as moments.
	Moment
	// Int64, Float64 and Truth are values in 64 bits, as package columnfile keeps them, of columns
	// whose file says that they have no others. A field that is empty is null.
	Int64
	Float64
	Truth
	// Reference is an ID below 2^63, or NotKey where the field is something else. Where the field
	// is empty it is NoKey if the column may have nulls, and else bad.
	Reference
)

// Values of a Reference that are no ids.
const (
	NoKey  uint64 = math.MaxUint64
	NotKey uint64 = math.MaxUint64 - 1
)

// NoMoment is the value of a Moment that is missing.
const NoMoment = math.MinInt64

// Column is a wanted column: which field of the row, and what it is.
type Column struct {
	Field int
	Kind  Kind
	Do    string // what to do about a field that is not of the kind; "" is not said
	Nulls bool   // of References: fields may be empty, or say that they are missing
}

// Spec says what to read.
type Spec struct {
	Format
	// Width is the number of fields that every row must have.
	Width int
	// Names are the names of the fields, for messages; nil where there are none.
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

// name returns how a message calls a field.
func (s *Spec) name(field int) string {
	if field < len(s.Names) && s.Names[field] != "" {
		return fmt.Sprintf("column %q", s.Names[field])
	}
	return fmt.Sprintf("field %d", field+1)
}

// isMissing reports whether a field means that its value is not known.
func (s *Spec) isMissing(f []byte) bool {
	return len(f) == 0 || len(s.Missing) > 0 && slices.Contains(s.Missing, string(f))
}
