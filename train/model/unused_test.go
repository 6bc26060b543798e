package model

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gdb/kv"
	"gdb/train/setting"
)

// TestUnusedOptions: options are named that a model does not read, and only if they are set.
func TestUnusedOptions(t *testing.T) {
	all := setting.Options{Heads: 2, Aggregate: "mean", Residual: true, Norm: "layer",
		Activation:   "elu",
		InputDropout: ptrTo(0.1)}
	for name, want := range map[string][]string{"sage": {"heads"}, "gcn": {"heads"},
		"gat": {"aggregate"}, "gatv2": {"aggregate"}, "gin": {"heads"},
		"sgc": {"heads", "residual", "norm", "activation"}, "mlp": {"heads", "aggregate"}} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &Spec{Architecture: a, Dims: Widths(a, 10, 4, []int{6}), Options: all}
		if got := s.Unused(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		s.Options = setting.Options{Aggregate: "auto", Norm: "none"}
		if got := s.Unused(); got != nil {
			t.Errorf("%s without options: %v", name, got)
		}
	}
	all.Bases = 2
	based := &Spec{Architecture: sage{}, Dims: []int{10, 6, 4}, Options: all}
	if got := based.Unused(); !slices.Equal(got, []string{"heads", "bases"}) {
		t.Errorf("sage with bases: %v", got)
	}
	all.Bases = 0
	one := &Spec{Architecture: sage{}, Dims: []int{10, 4}, Options: all}
	want := []string{"heads", "norm", "activation"}
	if got := one.Unused(); !slices.Equal(got, want) {
		t.Errorf("one layer: %v, want %v", got, want)
	}
}

// TestDocumentedOptions: docs/models.md has a section for each model, and says no in its table of
// options for those that the model does not read.
func TestDocumentedOptions(t *testing.T) {
	page, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	all := setting.Options{Heads: 2, Aggregate: "mean", Residual: true, Norm: "layer",
		Activation:   "elu",
		InputDropout: ptrTo(0.1), Bases: 2, Relations: 3}
	_, table, _ := strings.Cut(string(page), "| option |")
	names := strings.Split(table, "|")[:len(architectures)]
	looked := 0
	for i, a := range architectures {
		if got := strings.TrimSpace(names[i]); got != a.Name() {
			t.Fatalf("column %d is %q, want %s", i, got, a.Name())
		}
		if !strings.Contains(string(page), "\n## "+a.Name()+"\n") {
			t.Errorf("no section %s", a.Name())
		}
		s := &Spec{Architecture: a, Dims: Widths(a, 10, 4, []int{6}), Options: all}
		for _, option := range []string{"heads", "aggregate", "residual", "norm", "activation",
			"input-dropout", "bases"} {
			_, row, found := strings.Cut(table, "\n| `--"+option+"` |")
			says := strings.TrimSpace(strings.Split(row, "|")[i])
			if unused := slices.Contains(s.Unused(), option); !found || unused != (says == "no") {
				t.Errorf("%s --%s: the table says %q, unused %v", a.Name(), option, says, unused)
			}
			looked++
		}
	}
	if looked != 77 {
		t.Errorf("%d cells were looked at", looked)
	}
}

// TestPlaceTypes: where types begin is as the store has them, and nothing is where the model knows
// none.
func TestPlaceTypes(t *testing.T) {
	m := &kv.Meta{NodeTypes: []kv.NodeTypeMeta{{Name: "a"}, {Name: "b", First: 7}}}
	c := setting.Node{}
	if Of(&c).PlaceTypes(m); c.NodeTypes != nil {
		t.Errorf("a model without types has %v", c.NodeTypes)
	}
	c.NodeTypes = []int{0, 5}
	if Of(&c).PlaceTypes(m); !slices.Equal(c.NodeTypes, []int{0, 7}) {
		t.Errorf("types begin at %v", c.NodeTypes)
	}
}
