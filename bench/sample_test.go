package bench

import (
	"context"
	"testing"
)

func TestSample(t *testing.T) {
	r, err := Sample(context.Background(), SampleOptions{Scale: 10, Edges: 8000, Batch: 20,
		Batches: 5, Threads: []int{1, 2}, Fanout: []int{3, 2},
		Strategy: []string{"uniform", "weighted"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Bench != "sample" || len(r.Rows) != 4 {
		t.Fatalf("%+v", r)
	}
	for i, row := range r.Rows {
		strategy := [2]string{"uniform", "weighted"}[i/2]
		if row["threads"] != i%2+1 || row["strategy"] != strategy ||
			row["fanout"] != "3,2" || row["topology"] != "resident" {
			t.Errorf("row %v", row)
		}
		edges, ok := row["edges_per_s_per_core"].(float64)
		nodes, _ := row["nodes_per_batch"].(float64)
		if !ok || edges <= 0 || nodes <= 20 {
			t.Errorf("row %v", row)
		}
	}
	for _, o := range []SampleOptions{{Topology: []string{"cached"}},
		{Topology: []string{"paged"}}, {Strategy: []string{"wild"}}} {
		if _, err := Sample(context.Background(), o); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
}
