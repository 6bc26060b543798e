package link

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/train/setting"
)

// TestSteps: a step on rows of another's changes those that Rows names, and no others.
func TestSteps(t *testing.T) {
	s, c := mustCircle(t, true), circleConfig("complex")
	table, err := newTable("rows", circleEntities, c.Dim, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range table.Values {
		table.Values[i] = r.Float32()
	}
	c.Negatives = 3
	steps, err := NewSteps(&c, s.Meta(), table)
	if err != nil {
		t.Fatal(err)
	}
	if n := steps.model.entities.Rows; n != 0 {
		t.Errorf("%d rows of entities are held besides", n)
	}
	for key := range uint64(20) {
		edges := randomBatch(r)
		rows := slices.Clone(steps.Rows(edges, key))
		before := slices.Clone(table.Values)
		if err := steps.Step(edges, key); err != nil {
			t.Fatal(err)
		}
		for row := range uint32(circleEntities) {
			old := before[int(row)*c.Dim:][:c.Dim]
			if same := slices.Equal(old, table.row(row)); same == slices.Contains(rows, row) {
				t.Fatalf("step %d: row %d is the same: %v; %v", key, row, same, rows)
			}
		}
	}
	if err := steps.Close(); err != nil {
		t.Error(err)
	}
	c.Negatives = setting.NegativesAll
	if _, err := NewSteps(&c, s.Meta(), table); err == nil {
		t.Error("steps with all entities as negatives")
	}
}
