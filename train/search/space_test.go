package search

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	s, err := Parse("hidden=64, 256 ;--lr=1e-3..1e-1; heads=1..8;fanout=10,10|5,5")
	if err != nil {
		t.Fatal(err)
	}
	want := Space{{Name: "hidden", Values: []string{"64", "256"}},
		{Name: "lr", Low: 1e-3, High: 0.1},
		{Name: "heads", Low: 1, High: 8, Whole: true},
		{Name: "fanout", Values: []string{"10,10", "5,5"}}}
	if fmt.Sprint(s) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", s, want)
	}
	for text, said := range map[string]string{
		"":                   "want NAME=V1,V2",
		"hidden":             "want NAME=V1,V2",
		"hidden=":            "want NAME=V1,V2",
		"=1":                 "want NAME=V1,V2",
		"hidden=1;":          "want NAME=V1,V2",
		"hidden=1,,2":        "empty value",
		"hidden=1,1":         "the value 1 is there twice",
		"hidden=1;hidden=2":  "hidden is there twice",
		"lr=0.1..0.01":       "lr: 0.1..0.01 is no range",
		"lr=1..1":            "is no range",
		"lr=a..b":            "is no range",
		"lr=1..NaN":          "is no range",
		"lr=-1e308..1e308":   "is no range",
		"lr=1..":             "is no range",
		"lr=0..+Inf;hidden=": "is no range",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: error %v, want %q", text, err, said)
		}
	}
}

// trials draws from a space that is written down.
func trials(t *testing.T, space string, n int, seed uint64) []Trial {
	t.Helper()
	s, err := Parse(space)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Trials(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTrialsOfLists(t *testing.T) {
	for _, c := range []struct {
		space   string
		n, want int
	}{{"a=1,2,3;b=x,y", 20, 6}, {"a=1,2,3;b=x,y", 6, 6}, {"a=1,2,3;b=x,y", 4, 4},
		{"a=1,2;b=x,y", 9, 4}} {
		seen, all := map[string]bool{}, trials(t, c.space, c.n, 1)
		for _, trial := range all {
			seen[trial.String()] = true
		}
		if len(seen) != c.want || len(all) != c.want {
			t.Errorf("%d trials of %s: %d, want %d different ones: %v", c.n, c.space, len(all),
				c.want, seen)
		}
	}
	first, second := trials(t, "a=1,2,3;b=x,y", 4, 1), trials(t, "a=1,2,3;b=x,y", 4, 2)
	if fmt.Sprint(first) == fmt.Sprint(second) {
		t.Errorf("two seeds draw the same: %v", first)
	}
	if fmt.Sprint(first) != fmt.Sprint(trials(t, "a=1,2,3;b=x,y", 4, 1)) {
		t.Error("one seed draws two things")
	}
}

// TestTrialsOfRanges: each of n equal parts of a range has one trial, also beside listed values,
// which come equally often.
func TestTrialsOfRanges(t *testing.T) {
	const n = 12
	parts, listed := map[int]int{}, map[string]int{}
	rates := map[int]int{}
	for _, trial := range trials(t, "dropout=0..0.6;hidden=16,64,256;lr=1e-4..1e-1", n, 3) {
		v, err := strconv.ParseFloat(trial[0].Text, 64)
		if err != nil || v < 0 || v > 0.6 || len(trial[0].Text) > len("0.00123") {
			t.Errorf("dropout %s: %v", trial[0].Text, err)
		}
		parts[int(v/0.6*n)]++
		listed[trial[1].Text]++
		v, err = strconv.ParseFloat(trial[2].Text, 64)
		if err != nil {
			t.Error(err)
		}
		rates[int(math.Floor((math.Log10(v)+4)/3*n))]++
	}
	if len(parts) != n || len(rates) != n {
		t.Errorf("parts of the ranges: %v and %v, want %d each", parts, rates, n)
	}
	if len(listed) != 3 || listed["64"] != n/3 {
		t.Errorf("listed values: %v, want each %d times", listed, n/3)
	}
}

// TestTrialsOfWholeNumbers: the ends of a range are in it.
func TestTrialsOfWholeNumbers(t *testing.T) {
	seen := map[string]int{}
	for _, trial := range trials(t, "heads=1..4", 400, 1) {
		seen[trial[0].Text]++
	}
	if len(seen) != 4 || seen["1"] != 100 || seen["4"] != 100 {
		t.Errorf("numbers from 1 to 4 in 400 trials: %v", seen)
	}
	for _, trial := range trials(t, "hidden=32..512", 50, 1) {
		v, err := strconv.Atoi(trial[0].Text)
		if err != nil || v < 32 || v > 512 {
			t.Errorf("hidden %s: %v", trial[0].Text, err)
		}
	}
}

func TestTooManyCombinations(t *testing.T) {
	var parts []string
	for i := range 41 {
		parts = append(parts, fmt.Sprintf("a%d=1,2", i))
	}
	s, err := Parse(strings.Join(parts, ";"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trials(3, 1); err == nil || !strings.Contains(err.Error(), "2^40") {
		t.Errorf("error %v", err)
	}
}
