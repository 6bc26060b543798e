package setting

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mustLine is a line on which settings were given, NAME=VALUE each.
func mustLine(t *testing.T, given ...string) *Line {
	t.Helper()
	l := NewLine()
	for _, g := range given {
		name, value, _ := strings.Cut(g, "=")
		if err := l.Value(Find(name)).Set(value); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestLineWins: a value that was given wins over the one before, and nothing else changes.
func TestLineWins(t *testing.T) {
	base := Default()
	base.LR, base.Batch, base.Widths, base.Hidden = 0.5, 7, []int{3, 4}, 3
	got, err := mustLine(t, "batch=9", "hidden=8", "order=auto", "feature-cache=1MiB").Node(base)
	if err != nil {
		t.Fatal(err)
	}
	if got.LR != 0.5 || got.Batch != 9 || got.Hidden != 8 || got.Widths != nil ||
		got.PartitionOrder != "" || got.FeatureCache != 1<<20 {
		t.Errorf("%+v", got)
	}
	link := DefaultLink("transe")
	link.Dim = 6
	other, err := mustLine(t, "batch=9", "order=beta", "negatives=all", "fanout=5,all").OnLink(link)
	if err != nil {
		t.Fatal(err)
	}
	if other.Decoder != "transe" || other.Dim != 6 || other.Batch != 9 ||
		other.Order != OrderBeta ||
		other.Negatives != NegativesAll || other.Fanout != "5,all" {
		t.Errorf("%+v", other)
	}
}

// TestLineOfTheOtherTask: settings of one task, and values that only it has, are refused by the
// other.
func TestLineOfTheOtherTask(t *testing.T) {
	for given, want := range map[string]string{
		"hidden=5": "--hidden is not for --task link", "epochs=auto": "--task link: --epochs: ",
		"dropout=auto": "--task link: --dropout: "} {
		if _, err := mustLine(t, given).OnLink(DefaultLink("dot")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", given, err, want)
		}
		if _, err := mustLine(t, given).Node(Default()); err != nil {
			t.Errorf("%s for nodes: %v", given, err)
		}
	}
	if _, err := mustLine(t, "dim=5").Node(Default()); err == nil ||
		!strings.Contains(err.Error(), "--dim is of --task link") {
		t.Errorf("dim for nodes: %v", err)
	}
}

// TestSamplersOfLine: the settings of the sampler that was not chosen are left out.
func TestSamplersOfLine(t *testing.T) {
	layers := Default()
	layers.Sampler, layers.Fanout, layers.LayerSize = SamplerLayer, nil, []int{60, 60}
	for _, c := range []struct {
		base           Node
		given          []string
		fanout, layers []int
	}{
		{Default(), []string{"sampler=layer", "layer-size=5,6"}, nil, []int{5, 6}},
		{Default(), []string{"layer-size=5,6"}, []int{10, 10}, []int{5, 6}}, // which is refused
		{layers, nil, nil, []int{60, 60}},
		{layers, []string{"sampler=neighbor"}, []int{10, 10}, nil},
		{layers, []string{"resume=r1"}, []int{10, 10}, nil},
	} {
		got, err := mustLine(t, c.given...).Node(c.base)
		if err != nil || !slices.Equal(got.Fanout, c.fanout) ||
			!slices.Equal(got.LayerSize, c.layers) {
			t.Errorf("%v: fanout %v, layers %v, %v", c.given, got.Fanout, got.LayerSize, err)
		}
	}
}

// TestIdle: what changes nothing is told once, with the first of what it needs.
func TestIdle(t *testing.T) {
	l := mustLine(t, "negatives=all", "degree-power=0.5", "fanout=5", "margin=3", "loss=softmax")
	c, err := l.OnLink(DefaultLink("distmult"))
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"fanout", "--encoder"}, {"degree-power", "a number of --negatives"},
		{"margin", "--loss margin or adversarial"}}
	if got := l.Idle(&c); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSameResult: a run goes on with what changes no result, and with nothing else.
func TestSameResult(t *testing.T) {
	for _, c := range []struct {
		change func(c *Node)
		want   string
	}{
		{func(c *Node) { c.Cache, c.Memory, c.Epochs, c.Backend = "none", 9, 99, BackendCUDA }, ""},
		{func(c *Node) { c.Sampler, c.Sample, c.ClassWeights, c.LRSchedule = "", "", "", "" }, ""},
		{func(c *Node) { c.Precision = BFloat16 }, "precision bf16: it began with f32"},
		{func(c *Node) { c.Precision, c.ChangePrecision = BFloat16, true }, ""},
		{func(c *Node) { c.Fanout = []int{10, 5} }, "fanout [10 5]: it began with [10 10]"},
		{func(c *Node) { c.Widths = []int{4, 5} }, "hidden 256 [4 5]: it began with 256"},
		{func(c *Node) { c.Heads = 2 }, "heads 2: it began with 0"},
		{func(c *Node) { c.Threads = 3 }, "threads 3: it began with 0"},
	} {
		old, now := Default(), Default()
		old.Run = "a"
		c.change(&now)
		err := now.SameResult(&old)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	now, old := Default(), Default()
	now.LRSchedule, old.LRSchedule, now.Epochs, old.Epochs = ScheduleCosine, ScheduleCosine, 4, 3
	if err := now.SameResult(&old); err == nil {
		t.Error("a cosine over 3 epochs goes on over 4")
	}
	link, was := DefaultLink("dot"), DefaultLink("dot")
	link.Threads, link.Epochs, was.EncoderInput, was.Encoder = 7, 99, "", ""
	if err := link.SameResult(&was); err != nil {
		t.Error(err)
	}
	link.Dim = 3
	if err := link.SameResult(&was); err == nil || !strings.Contains(err.Error(), "with dim 3") {
		t.Errorf("another width: %v", err)
	}
}

// TestWordsAndBounds: words that a setting does not know are refused, and numbers out of bounds.
func TestWordsAndBounds(t *testing.T) {
	for _, r := range Rows {
		for _, task := range []Tasks{OfNodes, OfLinks} {
			var settings Settings
			if node, link := Default(), DefaultLink("distmult"); task == OfNodes {
				settings = &node
			} else {
				settings = &link
			}
			v := r.value(settings)
			if v == nil || v.Type() != "string" || r.Any || r.choices(task) == nil {
				continue
			}
			for _, word := range append([]string{"nonsense"}, r.choices(task)...) {
				if err := v.Set(word); err != nil {
					t.Errorf("--%s %s: %v", r.Name, word, err)
				}
				err := checkRows(settings)
				if (err == nil) != (word != "nonsense") {
					t.Errorf("--%s %s: error %v", r.Name, word, err)
				}
			}
		}
	}
	for want, change := range map[string]func(c *Node){
		"batch 0: give at least 1":             func(c *Node) { c.Batch = 0 },
		"lr 0: give a positive number":         func(c *Node) { c.LR = 0 },
		"dropout 1: give a number from 0 to":   func(c *Node) { c.Dropout = 1 },
		"clip -1: give the most that the norm": func(c *Node) { c.Clip = -1 },
		"eval-every 0: give at least 1":        func(c *Node) { c.EvalEvery = 0 },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The names in records never change: programs read them, and runs that were made before.
var nodeNames = strings.Fields(`activation aggregate backend bases batch before cache
checkpoint_every class_weights clip device device_cache dropout edge_weight epochs eval_every
eval_mode fanout feature_cache heads hidden input_dropout io layer_size logical_partitions loss lr
lr_schedule macro_batch memory metric model neighbor_cache node_embedding node_types norm
normalize optimizer
order partition_order partitions partitions_in_memory patience plain_launches precision precompute
products relation_sources relations residual run sample sampler scale seed sparse_words split
superbatch threads topology tune type_widths warmup weight_decay widths`)

var linkNames = strings.Fields(`batch candidates checkpoint_every decoder degree_power dim dropout
encoder encoder_input encoder_lr epochs eval_every fanout filter_negatives init logical_partitions
loss lr lr_schedule margin memory negative_sampling negatives norm optimizer order partitions
partitions_in_memory patience reciprocal regularizer regularizer_weight run seed staleness
temperature threads`)

func TestRecordedNames(t *testing.T) {
	node, link := Default(), DefaultLink("dot")
	for _, c := range []struct {
		settings Settings
		want     []string
	}{{&node, nodeNames}, {&link, linkNames}} {
		var got []string
		for _, s := range Texts(c.settings) {
			got = append(got, s[0])
		}
		b, err := json.Marshal(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		flat := map[string]any{}
		if err := json.Unmarshal(b, &flat); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.want {
			if !slices.Contains(got, name) {
				t.Errorf("records have no %s any more", name)
			}
		}
		for name := range maps.Keys(flat) {
			if !slices.Contains(got, name) {
				t.Errorf("a record has %s, which no row shows", name)
			}
		}
	}
	record := `{"run":"r1","model":"gat","fanout":[5,-1],"hidden":64,"heads":2,"lr":0.5,` +
		`"partition_order":"dispersed","partitions":8,"eval_every":2,"memory":7,"order":5}`
	var old Node
	if err := json.Unmarshal([]byte(record), &old); err != nil {
		t.Fatal(err)
	}
	if old.Run != "r1" || old.Model != "gat" || !slices.Equal(old.Fanout, []int{5, -1}) ||
		old.Hidden != 64 || old.Heads != 2 || old.LR != 0.5 || old.PartitionOrder != "dispersed" ||
		old.Partitions != 8 || old.EvalEvery != 2 || old.Memory != 7 || *old.Order != 5 {
		t.Errorf("%+v", old)
	}
}

// TestStepName: what changes the time of a step has another name, and nothing else.
func TestStepName(t *testing.T) {
	first := Default()
	for _, c := range []struct {
		change func(c *Node)
		other  bool
	}{
		{func(c *Node) { c.Batch = 9 }, true}, {func(c *Node) { c.Heads = 2 }, true},
		{func(c *Node) { c.Precision = BFloat16 }, true}, {func(c *Node) { c.Dropout = 0 }, true},
		{func(c *Node) { c.Sample = SampleLatest }, true},
		{func(c *Node) { c.Precision, c.Sample = Float32, "" }, false},
		{func(c *Node) { c.Dropout, c.LR, c.Loss, c.Cache = 0.3, 9, "bce", "sieve" }, false},
		{func(c *Node) { c.Seed, c.Memory, c.Run, c.Epochs = 9, 9, "b", 9 }, false},
	} {
		now := Default()
		c.change(&now)
		if (now.StepName() != first.StepName()) != c.other {
			t.Errorf("%s beside %s", now.StepName(), first.StepName())
		}
	}
}
