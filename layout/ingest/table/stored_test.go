package table

import "testing"

// TestColumnTypeOfNumbers: numbers of which one is a code, with zeros before it, are text.
func TestColumnTypeOfNumbers(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
	}{{[]string{"7", "0", "-12"}, "int64"}, {[]string{"0.5", "+7", "1e3"}, "float64"},
		{[]string{"01234", "99"}, "string"}, {[]string{"", "7"}, "int64"},
		{[]string{"1", "true"}, "string"}} {
		table := &Table{}
		for _, v := range c.values {
			table.Sample = append(table.Sample, []string{v})
		}
		if got := ColumnType(table, 0, nil); got != c.want {
			t.Errorf("%q: %s, want %s", c.values, got, c.want)
		}
	}
}
