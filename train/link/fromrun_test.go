package link

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gdb/compute/kernel"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/setting"
)

// still makes a training whose steps change vectors by less than they can show.
func still(c Config, from string) Config {
	c.Run, c.FromRun, c.Epochs, c.LR, c.EncoderLR = "after", from, 1, 1e-12, 1e-12
	return c
}

// TestFromRun: a run begins with what another learned, and evaluates as that did.
func TestFromRun(t *testing.T) {
	encoded := circleConfig("distmult")
	encoded.Encoder, encoded.Fanout, encoded.EncoderLR = "sage", "5", 0.01
	encoded.EncoderInput = setting.EncoderVectors
	reciprocal := circleConfig("complex")
	reciprocal.Reciprocal = true
	for name, c := range map[string]Config{"transe": circleConfig("transe"),
		"reciprocal": reciprocal, "dot": circleConfig("dot"), "encoder": encoded} {
		t.Run(name, func(t *testing.T) {
			s := mustCircle(t, name != "dot")
			c.Epochs, c.EvalEvery = 20, 20 // the last epoch is the best
			first := mustRun(t, s, c)
			next := mustRun(t, s, still(c, c.Run))
			if d := next.Best - first.Best; d > 1e-3 || d < -1e-3 {
				t.Errorf("MRR %g, and was %g", next.Best, first.Best)
			}
			was, is := lastRows(t, s, c.Run), lastRows(t, s, "after")
			for i, a := range was {
				if strings.Contains(a.Name, "moments") || strings.Contains(a.Name, "adagrad") ||
					strings.Contains(a.Name, "squares") || strings.Contains(a.Name, "best") {
					continue
				}
				near := func(x, y float32) bool { return x-y < 1e-5 && y-x < 1e-5 }
				if a.Name != is[i].Name || !slices.EqualFunc(a.Values, is[i].Values, near) {
					t.Errorf("%s of the run differs from %s", is[i].Name, a.Name)
				}
			}
		})
	}
}

// TestFromRunGrows: entities and relations that the other run did not know keep what the seed drew,
// and reciprocal relations stand behind all others.
func TestFromRunGrows(t *testing.T) {
	s := mustCircle(t, true)
	c := circleConfig("distmult")
	c.Reciprocal, c.Epochs, c.EvalEvery = true, 1, 1
	dir := runs.Open(s, "old")
	const entities, relations = 7, 3
	known := []runs.Array{{Name: runs.BestEntitiesName, Values: filled(entities*c.Dim, 1)},
		{Name: runs.BestRelationsName, Values: filled(2*relations*c.Dim, 2)}}
	copy(known[1].Values[relations*c.Dim:], filled(relations*c.Dim, 3))
	if err := s.FS().MkdirAll(dir.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	at := &position{}
	at.HasBest = true
	if err := dir.WriteState(at, known, nil); err != nil {
		t.Fatal(err)
	}
	tr := &trainer{cfg: c, store: s, pool: kernel.NewPool(2), stepper: &stepper{}}
	defer tr.pool.Close()
	var err error
	if tr.model, err = newModel(&tr.cfg, 9, circleRelations, nil); err != nil {
		t.Fatal(err)
	}
	defer tr.model.Close()
	tr.model.init(5, tr.pool)
	drawn := [2][]float32{slices.Clone(tr.model.entities.Values),
		slices.Clone(tr.model.relations.Values)}
	state, err := dir.OpenState("checkpoint-1", &position{})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	if err := tr.takeState(state, at, nil); err != nil {
		t.Fatal(err)
	}
	wantEntities := slices.Concat(filled(7*c.Dim, 1), drawn[0][7*c.Dim:])
	if !slices.Equal(tr.model.entities.Values, wantEntities) {
		t.Error("entities differ")
	}
	d := c.Dim
	wantRelations := slices.Concat(filled(3*d, 2), drawn[1][3*d:4*d], filled(3*d, 3),
		drawn[1][7*d:])
	if !slices.Equal(tr.model.relations.Values, wantRelations) {
		t.Error("relations differ")
	}
	if tr.model.entities.Rows = 6; tr.takeState(state, at, nil) == nil {
		t.Error("a run that knows more entities than the store was taken")
	}
	tr.model.entities.Rows = 9
}

// filled returns n values v.
func filled(n int, v float32) []float32 { return slices.Repeat([]float32{v}, n) }

// TestFromRunRefused: vectors that do not fit are refused, with what differs, and no run is made.
func TestFromRunRefused(t *testing.T) {
	s := mustCircle(t, true)
	c := circleConfig("distmult")
	c.Epochs, c.EvalEvery = 1, 1
	mustRun(t, s, c)
	disk := c
	disk.Run, disk.Order, disk.Partitions, disk.PartitionsInMemory = "disk", setting.OrderBeta, 4, 2
	mustRun(t, s, disk)
	for _, bad := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.FromRun = "r9" }, `no run "r9"`},
		{func(c *Config) { c.Dim = 8 }, "dim is 8 here"},
		{func(c *Config) { c.Decoder = "complex" }, "decoder is complex here"},
		{func(c *Config) { c.Reciprocal = true }, "reciprocal is true here"},
		{func(c *Config) { c.FromRun = "disk" }, "on disk by partition"},
		{func(c *Config) { c.Order, c.Partitions, c.PartitionsInMemory = disk.Order, 4, 2 },
			"raise --memory"},
	} {
		next := still(c, c.Run)
		bad.change(&next)
		_, err := Run(context.Background(), s, mustDevice(t), next, nil)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("error %v, want %q", err, bad.want)
		}
		if made(s, next.Run) {
			t.Errorf("%s: the run was made", bad.want)
		}
	}
}

// made reports whether a store has a run.
func made(s *layout.Store, run string) bool {
	_, err := s.FS().Stat(s.Path("runs", run))
	return err == nil
}
