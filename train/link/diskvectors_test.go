package link

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/link/triples"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/runs/vectors"
)

// mustVectors opens the vectors of a run in so much memory.
func mustVectors(t *testing.T, s *layout.Store, run string, memory int64) *vectors.Vectors {
	t.Helper()
	v, err := vectors.Open(t.Context(), s, mustDevice(t), run, mem.NewBudget(memory), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// eachIs compares what Each has with rows in so much memory, and says in how many windows it came;
// 0 if there is no room.
func eachIs(t *testing.T, s *layout.Store, c *Config, want []float32, memory int64) (windows int) {
	t.Helper()
	budget := mem.NewBudget(memory)
	v, err := vectors.Open(t.Context(), s, mustDevice(t), c.Run, budget, 2)
	if err != nil {
		return 0
	}
	var got []float32
	err = v.Each(t.Context(), func(first int, rows []float32) error {
		if first*c.Dim != len(got) {
			t.Errorf("rows from %d after %d", first, len(got)/c.Dim)
		}
		got, windows = append(got, rows...), windows+1
		return nil
	})
	if e := v.Close(); e != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are held", e, budget.Used())
	}
	if err != nil {
		return 0
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d values, want %d", len(got), len(want))
	}
	return windows
}

// TestDiskVectors: what reads the vectors of a run from partitions has those that evaluations of
// the run have, in the order of nodes, and scores as predictions do.
func TestDiskVectors(t *testing.T) {
	s := mustCircle(t, true)
	c := diskConfig("complex")
	c.Epochs = 4
	mustRun(t, s, c)
	trained, err := Open(t.Context(), s, mustDevice(t), c.Run, Limits{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := trained.Close(); err != nil {
			t.Error(err)
		}
	}()
	want, all := make([]float32, circleEntities*c.Dim), make([]uint32, circleEntities)
	for i := range all {
		all[i] = uint32(i)
	}
	if err := trained.vectors.Table.Gather(t.Context(), want, all); err != nil {
		t.Fatal(err)
	}
	if windows := eachIs(t, s, &c, want, 64<<20); windows != 1 {
		t.Errorf("%d windows in 64 MiB", windows)
	}
	least := int64(4 << 10) // the least in which there is room for a window
	for windows := 0; windows == 0; least += 4 << 10 {
		windows = eachIs(t, s, &c, want, least)
		if windows == 1 || least > 1<<20 {
			t.Errorf("%d windows in %d bytes", windows, least)
		}
	}
	v := mustVectors(t, s, c.Run, 64<<20)
	edges := []triples.Triple{{Head: 3, Relation: 1, Tail: 9}, {Head: 30, Tail: 2}}
	scores, err := trained.Scores(t.Context(), edges)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range edges {
		if score, err := v.Score(t.Context(), e); err != nil || score != scores[i] {
			t.Errorf("%+v scores %v, want %v; %v", e, score, scores[i], err)
		}
	}
	q := triples.Query{Entity: 5, Relation: 2}
	links, err := trained.Top(t.Context(), q, 6, false)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := v.Complete(t.Context(), q, 6, nil)
	if err != nil || len(answers) != 6 {
		t.Fatal(answers, err)
	}
	for i, a := range answers {
		if a.Entity != uint32(links[i].Tail) || a.Score != links[i].Score {
			t.Errorf("answer %d is %+v, want %+v", i, a, links[i])
		}
	}
	near, err := v.Nearest(t.Context(), 7, vectors.Euclid, circleEntities)
	if err != nil || len(near) != circleEntities-1 {
		t.Fatal(len(near), err)
	}
	own := want[7*c.Dim:][:c.Dim]
	for i, a := range near {
		sum := 0.0
		for k, x := range want[int(a.Entity)*c.Dim:][:c.Dim] {
			sum += float64(x-own[k]) * float64(x-own[k])
		}
		if math.Abs(math.Sqrt(sum)+float64(a.Score)) > 1e-4 || i > 0 && near[i-1].Score < a.Score {
			t.Errorf("node %d is at %v, want %v", a.Entity, -a.Score, math.Sqrt(sum))
		}
	}
}

// TestDiskVectorsEarly: before the first evaluation the vectors of the checkpoint are read;
// partitions that were not trained on yet have their initial vectors. Damage is found, and is told
// apart from files that a run which goes on has replaced.
func TestDiskVectorsEarly(t *testing.T) {
	s := mustCircle(t, true)
	c := diskConfig("complex")
	c.CheckpointEvery = 1
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, s, mustDevice(t), c, func(e run.Event) {
		if e.Progress != nil {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	v := mustVectors(t, s, c.Run, 0)
	begun, changed := make([]float32, c.Dim), 0
	for node := range kv.NodeID(circleEntities) {
		row, err := v.Row(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		if initOf(&c)(begun, uint64(node)); !slices.Equal(row, begun) {
			changed++
		}
	}
	if changed == 0 || changed == circleEntities {
		t.Errorf("%d of %d rows were trained on after one step", changed, circleEntities)
	}
	dir := s.Path("runs", c.Run, runs.PartitionsDir)
	files, err := s.FS().List(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		layouttest.Flip(t, s.FS(), s.FS().PathJoin(dir, file), 4096, 4)
	}
	damaged := mustVectors(t, s, c.Run, 0)
	if _, err := damaged.Nearest(t.Context(), 0, "", 3); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("flipped bits: %v", err)
	}
	for _, file := range files {
		layouttest.Flip(t, s.FS(), s.FS().PathJoin(dir, file), 4096, 4)
	}
	old := mustVectors(t, s, c.Run, 0)
	c.Resume, c.Epochs = c.Run, 2
	mustRun(t, s, c)
	if _, err := old.Nearest(t.Context(), 0, "", 3); err == nil || errors.Is(err,
		layout.ErrCorrupt) || !strings.Contains(err.Error(), "ask again") {
		t.Errorf("files that are gone: %v", err)
	}
}
