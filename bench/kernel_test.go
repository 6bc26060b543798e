package bench

import (
	"context"
	"testing"
)

func TestGEMM(t *testing.T) {
	for _, precision := range Precisions {
		r, err := GEMM(context.Background(), GEMMOptions{Shapes: [][3]int{{50, 20, 9}},
			Threads: []int{1, 2}, Rounds: 1, Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rows) != 6 {
			t.Fatalf("%d rows", len(r.Rows))
		}
		for _, row := range r.Rows {
			if g, ok := row["gflops"].(float64); !ok || g <= 0 || row["precision"] != precision {
				t.Errorf("row %v", row)
			}
			if (row["openblas_ratio"] == nil) == (row["why"] == nil) {
				t.Errorf("a missing ratio needs a reason: %v", row)
			}
			if f, ok := row["f32_ratio"].(float64); (precision == "bf16") != (ok && f > 0) {
				t.Errorf("%s: row %v", precision, row)
			}
		}
	}
	if _, err := GEMM(context.Background(), GEMMOptions{Precision: "f64"}); err == nil {
		t.Error("an unknown precision is not noticed")
	}
}

func TestGather(t *testing.T) {
	r, err := Gather(context.Background(), GatherOptions{Dims: []int{20}, Threads: []int{1, 2},
		TableBytes: 1 << 20, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if b, ok := row["bytes_per_s_per_core"].(float64); !ok || b <= 0 || row["dim"] != 20 {
			t.Errorf("row %v", row)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Gather(ctx, GatherOptions{TableBytes: 1 << 20}); err == nil {
		t.Error("a cancelled context is not noticed")
	}
}
