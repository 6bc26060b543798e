package input

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBits: a field is read to 64 bits, an empty one is null, and one of another kind is bad.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		field string
		bits  int64
		bad   string
	}{
		{Int64, "-9223372036854775808", math.MinInt64, ""}, {Int64, "", 0, ""},
		{Int64, "1.5", 0, "not an integer of 64 bits"}, {Int64, "9223372036854775808", 0, "not an"},
		{Float64, "0.1", int64(math.Float64bits(.1)), ""}, {Float64, "", 0, ""},
		{Float64, "x", 0, "not a number"},
		{Truth, "true", 1, ""}, {Truth, "", 0, ""}, {Truth, "2", 0, "not true or false"},
	} {
		var v Values
		var bad Bad
		ok := (&Spec{}).Append(&v, Column{Kind: c.kind}, []byte(c.field), &bad)
		switch {
		case ok != (c.bad == "") || !strings.Contains(bad.What, c.bad):
			t.Errorf("%q: %t, %s", c.field, ok, bad.What)
		case ok && (v.Integers[0] != c.bits || v.Nulls[0] != (c.field == "")):
			t.Errorf("%q: %d, null %t", c.field, v.Integers[0], v.Nulls[0])
		}
	}
}

// TestReferences: an id is an integer in canonical form below 2^63, or it is said to be none.
func TestReferences(t *testing.T) {
	for field, want := range map[string]uint64{"0": 0, "9223372036854775807": math.MaxInt64,
		"9223372036854775808": NotKey, "007": NotKey, "-1": NotKey, "x": NotKey, "": NoKey} {
		var v Values
		column := Column{Kind: Reference, Nulls: true}
		if !(&Spec{}).Append(&v, column, []byte(field), &Bad{}) || v.IDs[0] != want {
			t.Errorf("%q: %d, want %d", field, v.IDs, want)
		}
		column.Nulls = false
		if (&Spec{}).Append(&v, column, []byte(field), &Bad{}) != (field != "") {
			t.Errorf("%q: an id that is not null is read so", field)
		}
	}
}

// TestDays: days are read as time.Parse reads them, and what it refuses is refused.
func TestDays(t *testing.T) {
	fields := []string{"", "2020-1-01", "2020-12-311", "2020-13-01", "2020-00-10", "2020-01-00",
		"2020-01-32", "2021-02-29", "2020-02-29", "1900-02-29", "0000-01-01", "9999-12-31",
		"2020/01/01", "2020-01:01", "+020-01-01", "2020--1-01", "2020-01-0x", "２020-01-1"}
	for day := range 400 {
		at := time.Date(1969, 6, 1+day, 0, 0, 0, 0, time.UTC)
		fields = append(fields, at.Format(time.DateOnly))
	}
	for _, f := range fields {
		want, err := time.Parse(time.DateOnly, f)
		if got, ok := parseDay([]byte(f)); ok != (err == nil) || ok && !got.Equal(want) {
			t.Errorf("%q: %s, %t, want %s, %v", f, got, ok, want, err)
		}
		if got, day, ok := ParseDate([]byte(f)); ok != (err == nil) || ok && !got.Equal(want) ||
			day != ok {
			t.Errorf("%q: %s, a day %t, %t, want %s, %v", f, got, day, ok, want, err)
		}
	}
}

// TestIntegers: integers are read as strconv reads them.
func TestIntegers(t *testing.T) {
	for _, f := range []string{"", "0", "-0", "+7", "007", "9223372036854775807",
		"9223372036854775808", "-9223372036854775808", "18446744073709551615", "1 ", "1_0", "x"} {
		want, err := strconv.ParseInt(f, 10, 64)
		if got, ok := ParseInteger([]byte(f)); ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %d, %t, want %d, %v", f, got, ok, want, err)
		}
	}
}
