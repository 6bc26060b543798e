package train

import (
	"fmt"
	"strings"

	"gdb/train/plan"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/dustin/go-humanize"
)

// Begun describes a run of nodes that begins or goes on.
type Begun struct {
	Plan   *plan.Plan
	Config Config
	// Train is how many nodes are trained on. Unused names what the store has that the model
	// does not read.
	Train  uint64
	Unused []string
}

// Result describes the end of a run.
type Result struct {
	Run       string   `json:"run"`
	Metric    string   `json:"metric"`
	Test      *float64 `json:"test"` // nil if the store has no test split
	Best      float64  `json:"best_val"`
	BestEpoch int      `json:"best_epoch"`
	Epochs    int      `json:"epochs"`
	// Planned is what an epoch was forecast to cost, and Actual what the epochs of this process
	// cost. Both are nil if there was no forecast, or no epoch.
	Planned *plan.Forecast `json:"planned,omitempty"`
	Actual  *Totals        `json:"actual,omitempty"`
	Stopped bool           `json:"stopped"` // before the last epoch, for lack of improvement
	// Extends says whether more epochs may follow: see setting.Node.Extends.
	Extends bool `json:"-"`
	// OneSided says that almost all test nodes are predicted to be of one class; "" if not.
	OneSided string `json:"one_sided,omitempty"`
	// Steep tells of an early epoch whose loss is far above that of guessing, and what to do; "" if
	// there is none.
	Steep string `json:"steep,omitempty"`
}

// String returns the last line on standard output.
func (r *Result) String() string {
	test := "-"
	if r.Test != nil {
		test = runs.Figure(*r.Test, 4)
	}
	return fmt.Sprintf("test %s (epoch %d, best val %s)", test, r.BestEpoch,
		runs.Figure(r.Best, 4))
}

// Lines says what is trained, and with verbose how the memory is split, and why.
func (b *Begun) Lines(verbose bool) []string {
	c, seeds := &b.Config, "nodes"
	if c.OfEdges() {
		seeds = "edges"
	}
	lines := []string{fmt.Sprintf("%s %s, hidden %d, on %s %s, %s by %s", c.Model,
		c.Sampling(), c.Hidden, humanize.Comma(int64(b.Train)), seeds, c.Loss, c.Metric)}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	until := fmt.Sprintf("%d epochs", c.Epochs)
	switch {
	case c.Patience > 0:
		until = fmt.Sprintf("until val is no better %d times, at most %d epochs", c.Patience,
			c.Epochs)
	case c.Epochs == 1:
		until = "1 epoch"
	}
	add("%s; %s, decay %g", until, c.Rate(), c.WeightDecay)
	if c.Timed() {
		window := ""
		if c.Window > 0 {
			window = fmt.Sprintf(", and less than %s earlier", setting.FormatSpan(c.Window))
		}
		than := "not later than its " + c.Time
		if c.OfEdges() {
			than = "earlier than it"
		}
		add("of each seed only edges count that are %s%s", than, window)
	}
	if c.Before != nil {
		add("only edges before %s count", setting.FormatTime(*c.Before))
	}
	if len(b.Unused) > 0 {
		add("of the store it does not use: %s", strings.Join(b.Unused, ", "))
	}
	if c.Normalize == setting.NormalizeRow {
		add("features are counts: each row is divided by its sum (--normalize none: not)")
	}
	if verbose {
		lines = append(lines, engineLines(b.Plan)...)
	}
	return lines
}

// engineLines says how the memory is split, and why.
func engineLines(p *plan.Plan) []string {
	sampling := "exact sampling"
	if p.Partitions != nil {
		sampling = "sampling in partitions"
	}
	lines := []string{fmt.Sprintf("%s; %s", sampling, p)}
	if p.Forecast != nil {
		lines = append(lines, fmt.Sprintf("plan: %s", p.Forecast))
	}
	if why := p.Why(); why != "" {
		lines = append(lines, "chosen: "+why)
	}
	if way := p.OnDevice.Measured(); way != nil {
		lines = append(lines, fmt.Sprintf("steps on the device: %s", way))
	}
	if on := p.OnDevice; on != nil && on.Bus != nil {
		lines = append(lines, fmt.Sprintf("rows that the device does not keep: %s", on.Bus))
	}
	if on := p.OnDevice; on != nil && on.Draws != nil {
		lines = append(lines, on.Draws.String())
	}
	return lines
}
