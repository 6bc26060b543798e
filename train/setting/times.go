package setting

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Timing is how a training of nodes goes by time.
type Timing struct {
	// Time is the column of the nodes' table that says as of when a seed is sampled; "" is no time.
	Time string `json:"time,omitempty"`
	// Window, in seconds, leaves out edges that are so much earlier than the seed, or more; 0 is
	// none.
	Window int64 `json:"time_window,omitempty"`
	// SplitTimes are one or two times: seeds before the first are trained on, those from the last
	// on are tested, and those between validate. Nil takes the splits of the store.
	SplitTimes []int64 `json:"split_time,omitempty"`
	// Target is what is predicted of edges: [TYPE.]weight, or whether that is below or above a
	// number, as in weight<0; "" where labels of nodes are predicted. Seeds are edges then, each as
	// of its own time.
	Target string `json:"target,omitempty"`
}

var timeRows = []*Row{
	{Name: "time", For: OfNodes, InPlan: PlanValue, Group: GroupInputs,
		Help: "column of the nodes' table, a date, timestamp or integer: of each seed only " +
			"edges not later than its time are drawn, at every hop"},
	{Name: "time-window", For: OfNodes, Type: span, InPlan: PlanValue, Group: GroupInputs,
		Help: "with --time: only edges less than this earlier than the seed, such as 30d or 12h"},
	{Name: "split-time", For: OfNodes, Type: times, Group: GroupInputs,
		Help: "with --time or --task edge: train on seeds before the first time, validate up to " +
			"the second, test from there: 2024-01-01,2024-06-01; the store's splits are not read"},
	{Name: "target", For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupLearning,
		Help: "of --task edge: weight, RELATION.weight of a typed store (several with commas " +
			"between), or whether it is below or above a number, as in 'weight<0'"},
}

// Timed says whether lists are read as of a time.
func (c *Node) Timed() bool { return c.Time != "" || c.OfEdges() }

// OneByOne says whether each batch is drawn by itself, on the host.
func (c *Node) OneByOne() bool { return c.Timed() || len(c.EdgeFeatures) > 0 }

// OfEdges says whether edges are what is predicted.
func (c *Node) OfEdges() bool { return c.Target != "" }

// EdgeTarget is what Target says. Compare is '<', '>' or 0 for the weight itself.
type EdgeTarget struct {
	Relations []string // none: all edges
	Compare   byte
	Than      float64
}

// EdgeTarget reads Target.
func (c *Node) EdgeTarget() (t EdgeTarget, err error) {
	of := c.Target
	if i := strings.IndexAny(of, "<>"); i > 0 {
		t.Compare = of[i]
		if t.Than, err = strconv.ParseFloat(of[i+1:], 64); err != nil {
			return t, fmt.Errorf("train: --target %s: compare with a number, as in weight<0", of)
		}
		of = of[:i]
	}
	for _, name := range strings.Split(of, ",") {
		relation, ok := strings.CutSuffix(name, ".weight")
		if ok {
			t.Relations = append(t.Relations, relation)
			continue
		}
		if of == "weight" {
			break
		}
		return t, fmt.Errorf("train: --target %s: edges have a weight that can be predicted: give "+
			"weight, RELATION.weight, or either compared with a number, as in weight<0; another "+
			"column of edges is learned if it was ingested as --weight-col RELATION.COLUMN, and "+
			"one of nodes if as --label-col TYPE.COLUMN", of)
	}
	return t, nil
}

// EdgeOutputs is how many values are computed of an edge: 0 where nodes are predicted.
func (c *Node) EdgeOutputs() int {
	t, err := c.EdgeTarget()
	switch {
	case !c.OfEdges() || err != nil:
		return 0
	case t.Compare != 0:
		return 2
	}
	return 1
}

// validateTimes reports what does not go with times of seeds.
func (c *Node) validateTimes() error {
	if !c.Timed() {
		if c.Window != 0 || c.SplitTimes != nil {
			return errors.New("train: --time-window and --split-time go by the times of seeds: " +
				"add --time COLUMN, or leave them out")
		}
		return nil
	}
	if c.OfEdges() {
		if _, err := c.EdgeTarget(); err != nil {
			return err
		}
		if c.Time != "" {
			return errors.New("train: --time: seeds of --task edge have the times of their " +
				"edges: leave it out")
		}
	}
	if len(c.SplitTimes) == 2 && c.SplitTimes[0] >= c.SplitTimes[1] {
		return errors.New("train: --split-time: the second time is not later than the first")
	}
	flag := "--time"
	if c.OfEdges() {
		flag = "--task edge"
	}
	if c.EvalMode != EvalSampled && c.EvalMode != "auto" {
		return errors.New("train: " + flag + ": states of a node differ by the time of the seed, " +
			"so they are computed from batches: --eval-mode sampled (with --fanout all,all over " +
			"whole lists)")
	}
	if c.Sample == SampleWeighted {
		return notTogether(flag, "--sample weighted")
	}
	return c.batchByBatch(flag)
}

// batchByBatch refuses with a flag what does not draw each batch by itself, from whole lists on the
// host.
func (c *Node) batchByBatch(flag string) error {
	for _, refused := range []struct {
		is   bool
		what string
	}{
		{c.Sampler == SamplerLayer, "--sampler layer"},
		{c.MacroBatch > 1, "--macro-batch"}, {c.Superbatch > 0, "--superbatch"},
		{c.Cache == CacheBelady, "--cache belady"}, {c.Buffered(), c.PartitionSettings.Means()},
		{c.Precompute, "--precompute"},
		{c.Backend == BackendCUDA, "--backend cuda"},
	} {
		if refused.is {
			return notTogether(flag, refused.what)
		}
	}
	return nil
}

func notTogether(flag, other string) error {
	return fmt.Errorf("train: %s does not go with %s so far: leave one of both out", flag, other)
}

// Seconds of units of a span of time.
var spanUnits = []struct {
	unit    string
	seconds int64
}{{"d", 24 * 3600}, {"h", 3600}, {"m", 60}, {"s", 1}}

// span is a number of seconds, or of days, hours, minutes or seconds: 30d.
func span(fields []any) Value {
	return &parsed[int64]{fields[0].(*int64), "time", FormatSpan, func(s string) (int64, error) {
		number, unit := s, int64(1)
		for _, u := range spanUnits {
			if before, ok := strings.CutSuffix(s, u.unit); ok {
				number, unit = before, u.seconds
			}
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/unit {
			return 0, fmt.Errorf("%q is no span of time: give days, hours, minutes or seconds, "+
				"such as 30d or 12h", s)
		}
		return n * unit, nil
	}}
}

// FormatSpan shows a span of seconds in the largest unit of which it is a whole number; none is "".
func FormatSpan(seconds int64) string {
	for _, u := range spanUnits {
		if seconds%u.seconds == 0 && seconds != 0 {
			return strconv.FormatInt(seconds/u.seconds, 10) + u.unit
		}
	}
	return ""
}

// times are one or two times of edges.
func times(fields []any) Value {
	return &parsed[[]int64]{fields[0].(*[]int64), "times", func(all []int64) string {
		words := make([]string, len(all))
		for i, t := range all {
			words[i] = strconv.FormatInt(t, 10)
		}
		return strings.Join(words, ",")
	}, func(s string) (all []int64, err error) {
		for word := range strings.SplitSeq(s, ",") {
			t, err := parseTime(strings.TrimSpace(word))
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		if len(all) > 2 {
			return nil, errors.New("give one time, or two: before the first are seeds to train " +
				"on, from the second on those to test")
		}
		return all, nil
	}}
}

// FormatTime shows a time of edges, and when that is if it is in seconds since 1970.
func FormatTime(t int64) string {
	at := time.Unix(t, 0).UTC()
	if y := at.Year(); y < 1 || y > 9999 {
		return strconv.FormatInt(t, 10)
	}
	return fmt.Sprintf("%d (%s)", t, at.Format(time.RFC3339))
}
