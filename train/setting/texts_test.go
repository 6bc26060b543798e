package setting

import (
	"strings"
	"testing"

	"gdb/layout/rowfile"
)

// TestTextsLeaveOutWhatSaysNothing: no row is empty or nil, and what auto stands for has no number.
func TestTextsLeaveOutWhatSaysNothing(t *testing.T) {
	s := Default()
	all, set := Texts(&s), map[string]string{}
	for _, row := range SetTexts(&s) {
		set[row[0]] = row[1]
		if row[1] == "" || strings.Contains(row[1], "nil") || strings.Contains(row[1], "-1") {
			t.Errorf("%s is %q", row[0], row[1])
		}
	}
	if len(set) >= len(all) {
		t.Errorf("%d of %d settings are left out", len(all)-len(set), len(all))
	}
	for name, want := range map[string]string{"device_cache": "auto", "neighbor_cache": "auto",
		"model": "sage", "patience": "0", "lr": "0.01"} {
		if set[name] != want {
			t.Errorf("%s is %q, want %q", name, set[name], want)
		}
	}
	if _, shown := set["heads"]; shown {
		t.Error("heads is shown of a model without attention")
	}
	s.Options.Heads = 4
	for _, row := range SetTexts(&s) {
		if row[0] == "heads" && row[1] == "4" {
			return
		}
	}
	t.Error("heads is not shown though it is set")
}

// TestTextsAreShort: what was measured of each column is told in a few words.
func TestTextsAreShort(t *testing.T) {
	s := Default()
	for _, want := range []string{"none", "of 3 columns, measured"} {
		for _, row := range Texts(&s) {
			if row[0] == "scale" && row[1] != want {
				t.Errorf("scale is %q, want %q", row[1], want)
			}
		}
		s.Scale = &rowfile.Scale{Mean: make([]float32, 3), Inverse: make([]float32, 3)}
	}
}
