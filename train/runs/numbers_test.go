package runs

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestNumbersAreThoseOfJSON: what can be drawn is what the line of the record has.
func TestNumbersAreThoseOfJSON(t *testing.T) {
	val, hit := 0.0, 0.25
	for _, e := range []Epoch{{}, {Epoch: 3, Loss: 0.5, Val: &val, NeighborHit: &hit, Lists: 7,
		RSS:    9,
		Stages: []StageTimes{{Name: "sample"}}}} {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		var want []string
		for name, v := range fields {
			if f, ok := v.(float64); ok && name != "epoch" {
				want = append(want, name)
				if got, ok := e.Number(name); !ok || got != f {
					t.Errorf("%s is %v, %t, want %v", name, got, ok, f)
				}
			}
		}
		slices.Sort(want)
		if got := e.Numbers(); !slices.Equal(got, want) {
			t.Errorf("numbers %v, want %v", got, want)
		}
	}
	if _, ok := new(Epoch).Number("stages"); ok {
		t.Error("a list is taken for a number")
	}
}
