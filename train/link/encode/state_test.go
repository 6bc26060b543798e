package encode

import (
	"errors"
	"slices"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/train/setting"
)

// TestRestored: an encoder that takes over the arrays of another encodes as that does, and goes on
// as it.
func TestRestored(t *testing.T) {
	nodes := []uint32{3, 9, 41}
	step := func(e *Encoder, steps int) []float32 {
		rows, err := e.Batch(t.Context(), 1, nodes, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := slices.Clone(rows)
		if _, err := e.Step(slices.Clone(rows), steps); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, _, _ := mustOpen(t, "sage", "3,2", "")
	fresh, _, _ := mustOpen(t, "sage", "3,2", "")
	begun := step(first, 1)
	step(first, 2)
	arrays := first.Arrays()
	var names []string
	for _, a := range arrays {
		names = append(names, a.Name)
		if slices.Max(a.Values) == 0 && slices.Min(a.Values) == 0 {
			t.Errorf("%s are zero after two steps", a.Name)
		}
	}
	if want := []string{"encoder weights", "encoder first moments",
		"encoder second moments"}; !slices.Equal(names, want) {
		t.Errorf("arrays %q, want %q", names, want)
	}
	err := fresh.Restore(func(name string, to []float32) error {
		i := slices.Index(names, name)
		if i < 0 || len(to) != len(arrays[i].Values) {
			t.Fatalf("array %s of %d values", name, len(to))
		}
		copy(to, arrays[i].Values)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for steps := 3; steps < 5; steps++ {
		want, got := step(first, steps), step(fresh, steps)
		if !slices.Equal(got, want) || slices.Equal(got, begun) {
			t.Errorf("step %d differs after a checkpoint", steps)
		}
	}
	broken := errors.New("broken")
	if err := fresh.Restore(func(string, []float32) error { return broken }); !errors.Is(err,
		broken) {
		t.Errorf("error %v", err)
	}
}

// TestBatchBytes works out what a batch takes: the input and the output of the nodes that are
// scored, and of all that their fanout may reach, up to all nodes; and of those that All encodes at
// a time at least.
func TestBatchBytes(t *testing.T) {
	m := &kv.Meta{Nodes: 10_000_000, Directions: []string{layout.In.String()},
		Features: []kv.RowsMeta{{Name: "x", Dim: 5}}}
	for _, c := range []struct {
		fanout, input string
		directions    int
		scored        int64
		width, rows   int64
	}{
		{"10,5", "embedding", 1, 20_000, 8, 20_000 * 11 * 6},
		{"10,5", "embedding", 2, 20_000, 8, 20_000 * 21 * 11},
		{"10", "features", 1, 20_000, 5, 20_000 * 11},
		{"10", "both", 1, 20_000, 5 + 8, 20_000 * 11},
		{"10", "embedding", 1, 5, 8, 1 << 17},
		{"all", "embedding", 1, 5, 8, 10_000_000},
		{"10,all", "embedding", 1, 5, 8, 10_000_000},
		{"1000,1000", "embedding", 1, 20_000, 8, 10_000_000},
	} {
		s := setting.DefaultLink("distmult")
		s.Dim, s.Encoder, s.Fanout, s.EncoderInput = 8, "sage", c.fanout, c.input
		m.Directions = slices.Repeat([]string{"in"}, c.directions)
		if c.input == "features" {
			c.width += 8 // vectors have room too
		}
		if got, want := BatchBytes(&s, m, c.scored), 4*(c.width+8)*c.rows; got != want {
			t.Errorf("%+v: %d bytes, want %d", c, got, want)
		}
	}
}
