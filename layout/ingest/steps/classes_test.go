package steps

import (
	"slices"
	"strings"
	"testing"

	"gdb/layout/ingest/source"
)

// TestOneNumberOneClass: forms of one number are one class, numbers that mean unlabeled are none,
// and other negative ones are an error.
func TestOneNumberOneClass(t *testing.T) {
	for given, want := range map[string]string{
		"0.0 1 1.0":      "0.0 1",
		"1 1.0 1e0 2":    "1 2",
		"0.0 1.0":        "0.0 1.0",
		"1 1.0 a":        "1 1.0 a",
		"007 7":          "007 7",
		"10 9.0 9":       "9 10",
		"0 1 2 -1":       "0 1 2; -1",
		"0 1 -1.0 -100":  "0 1; -1.0 -100",
		"-1 1":           "-1 1",
		"-1.0 1.0 1":     "-1.0 1",
		"-1 0":           "0; -1",
		"0 -2 1":         "label -2 is negative",
		"-1 0 -2":        "f line 2: label -2 is negative",
		"2 -1 -2 0 1":    "label -2 is negative",
		"-0 0 1":         "0 1",
		"-1 x":           "-1 x",
		"-100 0.0 0 1.0": "0 1.0; -100",
	} {
		tab := NewClassTable(nil)
		words := strings.Fields(given)
		c := &source.LabelChunk{Where: source.Where{File: "f", Unit: "line"}}
		for _, w := range words {
			c.Text = append(c.Text, []byte(w))
		}
		for i := range words {
			if _, _, err := tab.Text(c, i); err != nil {
				t.Fatal(err)
			}
		}
		o, err := tab.Sorted()
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", given, err)
			}
			continue
		}
		got := strings.Join(o.Names, " ")
		if len(o.Unlabeled) > 0 {
			got += "; " + strings.Join(o.Unlabeled, " ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
		for i, w := range words {
			n, _, _ := tab.Text(c, i)
			switch final := o.Final[n]; {
			case slices.Contains(o.Unlabeled, w):
				if final != ClassUnlabeled {
					t.Errorf("%s: %s is class %d", given, w, final)
				}
			case o.Names[final] != w && o.Names[final] != wholeName(w):
				t.Errorf("%s: %s is class %s", given, w, o.Names[final])
			}
		}
	}
}
