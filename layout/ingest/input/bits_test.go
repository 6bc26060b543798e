package input

import (
	"math"
	"strings"
	"testing"
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
