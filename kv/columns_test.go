package kv

import (
	"slices"
	"testing"
)

func TestFeatureColumns(t *testing.T) {
	rows := RowsMeta{Name: "features", Dim: 5}
	named := &Meta{Features: []RowsMeta{rows}, FeatureNames: map[string][]ColumnMeta{
		"features": {{Name: "age"}, {Name: "x", Dim: 2}, {Name: "f0"}, {Name: "city=Rome"}}}}
	bare := &Meta{Features: []RowsMeta{rows}}
	for _, tc := range []struct {
		meta *Meta
		name string
		want int // -1: there is none
	}{{named, "age", 0}, {named, "x[1]", 2}, {named, "f0", 3}, {named, "f1", 1},
		{named, "city=Rome", 4}, {named, "x", -1}, {named, "f5", -1}, {named, "f01", -1},
		{bare, "f4", 4}, {bare, "f5", -1}, {bare, "age", -1}, {bare, "f-1", -1}, {bare, "f", -1}} {
		at, found := tc.meta.FeatureColumns(rows).Index(tc.name)
		if found != (tc.want >= 0) || found && at != tc.want {
			t.Errorf("column %q is %d, %v; want %d", tc.name, at, found, tc.want)
		}
	}
	want := []string{"age", "x[0]", "x[1]", "f0", "city=Rome"}
	if got := named.FeatureColumns(rows).Names(); !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	want = []string{"age", "x[2]", "f0", "city=Rome"}
	if got := named.FeatureColumns(rows).Sources(); !slices.Equal(got, want) {
		t.Errorf("columns of the source %q, want %q", got, want)
	}
	want = []string{"f0", "f1", "f2", "f3", "f4"}
	if got := bare.FeatureColumns(rows).Names(); !slices.Equal(got, want) {
		t.Errorf("names without a header %q, want %q", got, want)
	}
}

func TestCheckFeatureNames(t *testing.T) {
	for what, tc := range map[string]struct {
		names []ColumnMeta
		ok    bool
	}{"one a column": {[]ColumnMeta{{Name: "a"}, {Name: "b"}, {Name: "c"}}, true},
		"a list":    {[]ColumnMeta{{Name: "a", Dim: 3}}, true},
		"too few":   {[]ColumnMeta{{Name: "a"}}, false},
		"too many":  {[]ColumnMeta{{Name: "a", Dim: 4}}, false},
		"negative":  {[]ColumnMeta{{Name: "a", Dim: -1}}, false},
		"overflows": {[]ColumnMeta{{Name: "a", Dim: 1}, {Name: "b", Dim: 1<<63 - 1}}, false}} {
		m := &Meta{Features: []RowsMeta{{Name: "features", Dim: 3}},
			FeatureNames: map[string][]ColumnMeta{"features": tc.names}}
		if err := m.checkFeatureNames(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", what, err)
		}
		m.Features[0].Name = "others"
		if m.checkFeatureNames() == nil {
			t.Errorf("%s: names of features that are not there are taken", what)
		}
	}
}
