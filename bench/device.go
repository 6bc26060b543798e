package bench

import "context"

// Devices says which GPUs there are, how fast locked memory is copied to each, and how fast each
// multiplies matrices of float32, throughout and with factors rounded to TF32. Where there is none
// the one row says why.
func Devices(ctx context.Context) (*Report, error) {
	r := NewReport("device", "device", "name", "capability", "memory_bytes", "copy_bytes_per_s",
		"gflops", "tf32_gflops")
	rows, err := deviceRows(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		rows = append(rows, Row{"device": nil, "name": nil, "capability": nil, "memory_bytes": nil,
			"copy_bytes_per_s": nil, "gflops": nil, "tf32_gflops": nil, "why": err.Error()})
	}
	r.Rows = rows
	return r, nil
}
