package runs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/sample/superbatch"
)

// Launches counts what steps gave to a device, as backend.Launches does.
type Launches struct {
	Operations uint64  `json:"operations"`
	Calls      uint64  `json:"calls"`
	Graphs     uint64  `json:"graphs"`
	Busy       float64 `json:"device_busy_s"`
}

// Epoch is the record of an epoch, one line of metrics.jsonl. Times are seconds.
type Epoch struct {
	Epoch int     `json:"epoch"` // from 1
	Loss  float64 `json:"loss"`
	// Train is the metric over the predictions of the steps, and Val over the validation nodes; Val
	// is nil in epochs without evaluation.
	Train float64  `json:"train"`
	Val   *float64 `json:"val,omitempty"`
	// ValLoss is the mean loss of the validation nodes, without class weights; nil if Val is.
	ValLoss *float64 `json:"val_loss,omitempty"`
	Best    bool     `json:"best,omitempty"` // Val is the best so far
	// Rate is the learning rate of the last step.
	Rate float64 `json:"rate,omitempty"`
	// Time is the duration of the epoch without evaluation, Sampled the number of sampled edges,
	// and Read the bytes read from the disk.
	Time    float64 `json:"time"`
	Sampled uint64  `json:"sampled"`
	Read    uint64  `json:"read"`
	// Hit is the share of rows found in the feature cache.
	Hit float64 `json:"hit"`
	// DeviceHit is the share of rows that the device kept, for which the feature cache was not
	// asked; Missed is the share of rows found in neither. Sent is how many bytes steps were sent
	// on a device with memory of its own. All are left out for runs without one.
	DeviceHit float64 `json:"device_hit,omitempty"`
	Missed    float64 `json:"missed,omitempty"`
	Sent      uint64  `json:"sent_bytes,omitempty"`
	// InPlace says that the device read rows in the host's memory; Sent counts these too.
	InPlace bool `json:"rows_in_place,omitempty"`
	// NeighborHit is the share of the lists sampled from that were in the neighbor cache; left out
	// if there is none.
	NeighborHit *float64 `json:"neighbor_hit,omitempty"`
	// Lists is how many lists the neighbor cache was asked for.
	Lists uint64 `json:"lists,omitempty"`
	// IOWait is the share of the time in which the step waited for a batch while reads were
	// under way.
	IOWait float64 `json:"io_wait"`

	Batches int    `json:"batches"`
	Nodes   uint64 `json:"nodes"` // rows gathered
	// Stale is about hidden states of earlier steps; nil where there are none.
	Stale *Stale `json:"stale,omitempty"`
	// Unlabeled counts the nodes of the train split that were sampled but have no label, and so are
	// not in the loss.
	Unlabeled uint64 `json:"unlabeled,omitempty"`
	// These are the times that each stage worked, summed over its goroutines. Wait is how long the
	// step waited for batches.
	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Wait    float64 `json:"wait_s"`
	IO      float64 `json:"io_s"`
	Eval    float64 `json:"eval_s"`
	// Reads says how rows that superbatches miss are read, as far as that was decided
	// in this epoch.
	Reads []superbatch.Reading `json:"reads,omitempty"`
	// Stages holds the times of each stage of making batches, and of the step.
	Stages []StageTimes `json:"stages,omitempty"`

	// Launches counts what the steps gave to a device; left out on the CPU.
	Launches *Launches `json:"launches,omitempty"`
	// Drawn counts the batches that the device drew, ahead ones too, and DrawnAgain those that the
	// host drew since they were larger than planned.
	Drawn      uint64 `json:"batches_drawn_on_device,omitempty"`
	DrawnAgain uint64 `json:"batches_drawn_again,omitempty"`

	// These say what the process holds after the epoch and its evaluation; left out where
	// that is not known.
	RSS     int64 `json:"rss,omitempty"`      // resident bytes
	RSSPeak int64 `json:"rss_peak,omitempty"` // their peak so far
	Held    int64 `json:"held"`               // bytes counted against --memory
	Files   int   `json:"files,omitempty"`    // open descriptors
	Prep    int64 `json:"prep"`               // bytes of files in the store's prep
}

// StageTimes holds how a stage spent its time in an epoch, in seconds summed over its workers:
// together the number of workers times the epoch's time. Time in which a stage neither worked nor
// waited, because its part was done or another phase had its turn, counts as blocked for stages
// that make batches ahead, and as starved for the stages after them.
type StageTimes struct {
	Name    string  `json:"name"` // sample, plan, sweep, read, gather or step
	Workers int     `json:"workers"`
	Busy    float64 `json:"busy_s"`
	Starved float64 `json:"starved_s"` // waiting for the stage before
	Blocked float64 `json:"blocked_s"` // waiting for the stage after, or for memory
}

// String returns the line of an epoch on standard output. A star marks the best epoch so far.
func (r Epoch) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d  loss %s  train %s", r.Epoch, Figure(r.Loss, 3), Figure(r.Train, 3))
	if r.Val != nil {
		fmt.Fprintf(&b, "  val %s", Figure(*r.Val, 3))
	}
	if r.Best {
		b.WriteByte('*')
	}
	fmt.Fprintf(&b, "  %.1fs", r.Time+r.Eval)
	if r.Stale != nil {
		fmt.Fprintf(&b, "  %s", r.Stale)
	}
	return b.String()
}

// Figure formats a score or a loss with a number of decimals. Values that are too large or too
// small for that, as errors of numbers may be, get fewer decimals or a power of ten.
func Figure(v float64, decimals int) string {
	switch size := math.Abs(v); {
	case size >= 1e8 || size > 0 && size < 1e-3:
		return strconv.FormatFloat(v, 'g', decimals+1, 64)
	case size >= 1e4:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// text returns what the line of an epoch of some steps and seconds says of a device.
func (l *Launches) text(steps int, seconds float64) string {
	if l == nil {
		return ""
	}
	n := float64(max(1, steps))
	return fmt.Sprintf(" launches %.1f a step of %.1f operations device busy %.0f%%",
		float64(l.Calls)/n, float64(l.Operations)/n, 100*l.Busy/max(seconds, 1e-9))
}

// Engine returns a line with the rate and what the epoch cost: time, edges sampled, what was read,
// and how each stage spent its time.
func (r Epoch) Engine() string {
	var b strings.Builder
	read := strings.ReplaceAll(mem.FormatSize(int64(r.Read)), " ", "")
	if r.Rate > 0 {
		fmt.Fprintf(&b, "rate %.4g ", r.Rate)
	}
	fmt.Fprintf(&b, "time %.1fs sampled %s edges read %s hit %.1f%% io-wait %.0f%%", r.Time,
		count(r.Sampled), read, 100*r.Hit, 100*r.IOWait)
	b.WriteString(r.Launches.text(int(r.Batches), r.Time))
	if r.Drawn > 0 {
		fmt.Fprintf(&b, " drawn on the device %d again on the host %d", r.Drawn, r.DrawnAgain)
	}
	if r.Sent > 0 {
		sent := "sent"
		if r.InPlace {
			sent = "read in place"
		}
		fmt.Fprintf(&b, " rows device/host/missed %.1f/%.1f/%.1f%% %s %s a batch",
			100*r.DeviceHit, 100*max(0, 1-r.DeviceHit-r.Missed), 100*r.Missed, sent,
			strings.ReplaceAll(mem.FormatSize(int64(r.Sent)/int64(max(1, r.Batches))), " ", ""))
	}
	if len(r.Stages) > 0 {
		b.WriteString(" busy/starved/blocked")
	}
	for _, s := range r.Stages {
		share := 100 / max(float64(s.Workers)*r.Time, 1e-9)
		fmt.Fprintf(&b, " %s %.0f/%.0f/%.0f%%", s.Name, s.Busy*share, s.Starved*share,
			s.Blocked*share)
	}
	return b.String()
}

// count formats large numbers as 41.2M.
func count(n uint64) string {
	v, units := float64(n), []string{"", "K", "M", "G", "T"}
	for v >= 1000 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	if v == float64(n) {
		return fmt.Sprintf("%d", n)
	}
	return fmt.Sprintf("%.1f%s", v, units[0])
}
