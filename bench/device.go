package bench

import (
	"context"

	"gdb/compute/kernel/bf16"
)

// Devices says which GPUs there are, how fast locked memory is copied to each, and how fast each
// multiplies matrices of float32, throughout and with factors rounded to TF32; what an operation
// costs that is given to it by a call of its own, and as one of many of a graph; how many bytes a
// second it reads and writes when it copies in its own memory, and what share of these when it
// gathers rows and averages lists of them. Where there is none the one row says why. A note says
// what the CPU multiplies matrices of bfloat16 with.
func Devices(ctx context.Context) (*Report, error) {
	columns := []string{"device", "name", "capability", "memory_bytes", "copy_bytes_per_s",
		"gflops", "tf32_gflops", "call_us", "graph_us", "inner_bytes_per_s", "gather_share",
		"mean_share"}
	r := newReport("device", columns...)
	r.Notes = []string{bf16.ChoiceText(bf16.Chosen())}
	rows, err := deviceRows(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		none := Row{"why": err.Error()}
		for _, c := range columns {
			none[c] = nil
		}
		rows = append(rows, none)
	}
	r.Rows = rows
	return r, nil
}
