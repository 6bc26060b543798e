package runs

import (
	"fmt"
	"strings"

	"gdb/internal/mem"
)

// LinkEpoch is the record of an epoch of a run that predicts links, one line of metrics.jsonl.
// Times are seconds. Fields that an Epoch has too have the same name.
type LinkEpoch struct {
	Epoch int `json:"epoch"` // from 1
	// Loss is the mean loss of an edge, summed over its two queries.
	Loss float64 `json:"loss"`
	// Val is the filtered mean reciprocal rank of the validation edges, nil in epochs without
	// evaluation.
	Val  *float64 `json:"val,omitempty"`
	Best bool     `json:"best,omitempty"` // Val is the best so far
	// Rate is the learning rate.
	Rate float64 `json:"rate"`
	// Time is the duration of the epoch without evaluation.
	Time    float64 `json:"time"`
	Eval    float64 `json:"eval_s"`
	Edges   uint64  `json:"edges"`
	Batches int     `json:"batches"`
	// Scores is how many edges and negatives were scored.
	Scores uint64 `json:"scores"`
	// These are for vectors on disk: sets of partitions, bytes of vectors read and written, and how
	// long training waited for the next part, which Time includes.
	Sets    int     `json:"sets,omitempty"`
	Read    int64   `json:"read,omitempty"`
	Written int64   `json:"written,omitempty"`
	Wait    float64 `json:"wait_s,omitempty"`
	// Launches counts what the steps gave to a device; left out on the CPU.
	Launches *Launches `json:"launches,omitempty"`
	// These say what the process holds after the epoch and its evaluation; left out where
	// that is not known.
	RSS     int64 `json:"rss,omitempty"`
	RSSPeak int64 `json:"rss_peak,omitempty"`
	Held    int64 `json:"held"` // bytes counted against --memory
}

// String returns the line of an epoch on standard output. A star marks the best epoch so far.
func (r LinkEpoch) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d  loss %s", r.Epoch, Figure(r.Loss, 3))
	if r.Val != nil {
		fmt.Fprintf(&b, "  val %s", Figure(*r.Val, 4))
	}
	if r.Best {
		b.WriteByte('*')
	}
	fmt.Fprintf(&b, "  %.1fs", r.Time+r.Eval)
	return b.String()
}

// Engine returns a line with the rate and what the epoch did.
func (r LinkEpoch) Engine() string {
	disk := ""
	if r.Sets > 0 {
		disk = fmt.Sprintf("; %d sets, read %s, written %s, waited %.1fs for the disk", r.Sets,
			mem.FormatSize(r.Read), mem.FormatSize(r.Written), r.Wait)
	}
	return fmt.Sprintf("rate %.4g time %.2fs edges %s scores %s, %s a second; evaluation %.1fs%s%s",
		r.Rate, r.Time, count(r.Edges), count(r.Scores),
		count(uint64(float64(r.Scores)/max(r.Time, 1e-9))), r.Eval,
		r.Launches.text(r.Batches, r.Time), disk)
}
