package bench

import "context"

// Devices says which GPUs there are, how fast locked memory is copied to each, and how fast each
// multiplies matrices of float32, throughout and with factors rounded to TF32; and what an
// operation costs that is given to it by a call of its own, and as one of many of a graph. Where
// there is none the one row says why.
func Devices(ctx context.Context) (*Report, error) {
	r := NewReport("device", "device", "name", "capability", "memory_bytes", "copy_bytes_per_s",
		"gflops", "tf32_gflops", "call_us", "graph_us")
	rows, err := deviceRows(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		rows = append(rows, Row{"device": nil, "name": nil, "capability": nil, "memory_bytes": nil,
			"copy_bytes_per_s": nil, "gflops": nil, "tf32_gflops": nil, "call_us": nil,
			"graph_us": nil, "why": err.Error()})
	}
	r.Rows = rows
	return r, nil
}
