package setting

import (
	"reflect"
	"slices"
	"testing"
)

// TestRowsHaveFields: each setting has its field in the settings of its tasks, and each field that
// is recorded has a row.
func TestRowsHaveFields(t *testing.T) {
	node, link := Default(), DefaultLink("transe")
	for _, c := range []struct {
		task     Tasks
		settings Settings
		without  []string // rows whose value the other task has for both
	}{{OfNodes, &node, nil}, {OfLinks, &link, []string{"io", "backend", "fanout"}}} {
		rows := map[string]bool{}
		for _, r := range Rows {
			if r.For&c.task == 0 {
				continue
			}
			fields := r.fields(c.settings)
			if len(fields) != 1+len(r.Fields) && !slices.Contains(c.without, r.Name) {
				t.Errorf("--%s has %d fields of task %d", r.Name, len(fields), c.task)
			}
			if r.Help != "" && len(fields) > 0 && r.value(c.settings) == nil {
				t.Errorf("--%s has no type for task %d", r.Name, c.task)
			}
			for _, name := range r.names(c.task) {
				rows[name] = true
			}
		}
		for name := range pathsOf(reflect.TypeOf(c.settings).Elem(), nil) {
			if !rows[name] {
				t.Errorf("the field %s of task %d has no row", name, c.task)
			}
		}
	}
}

// TestDefaults: what is trained where nothing is said.
func TestDefaults(t *testing.T) {
	want := Node{Neighbors: Neighbors{Fanout: []int{10, 10}, Sampler: "neighbor",
		Sample: "uniform"},
		Architecture: Architecture{Model: "sage", Hidden: 256},
		Data:         Data{Normalize: "auto", Features: "auto"},
		Learning: Learning{Batch: 1000, LR: 0.01, LRSchedule: "constant", Dropout: DropoutAuto,
			Optimizer: "adam", Loss: "auto"},
		NodeLearning: NodeLearning{WeightDecay: 0.0005, ClassWeights: "none"},
		Schedule:     Schedule{EvalEvery: 1}, Evaluation: Evaluation{"auto", "auto", 0},
		Caching: Caching{Cache: "auto", NeighborCache: NeighborAuto,
			Topology: "auto", IO: "auto"},
		Place: Place{Computing: Computing{Backend: "cpu"}, DeviceCache: DeviceCacheAuto,
			SampleOn: SampleAuto},
		Process: Process{Seed: 1}}
	if got := Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	link := Link{Scoring: Scoring{Decoder: "rotate", Dim: 256, Norm: 2, Reciprocal: true, Margin: 9,
		Temperature: 1, Regularizer: "none", Init: 0.1},
		Encoding:  Encoding{"none", "20", 0.003, "vectors"},
		Comparing: Comparing{Negatives: 400, NegativeSampling: "uniform", DegreePower: 0.75},
		Learning: Learning{Batch: 512, LR: 0.2, LRSchedule: "constant", Dropout: 0.2,
			Optimizer: "adagrad", Loss: "softmax"},
		Schedule:       Schedule{Epochs: 36, Patience: 3, EvalEvery: 3},
		LinkPartitions: LinkPartitions{Order: "auto"}, Computing: Computing{Backend: "cpu"},
		Process: Process{Seed: 1}}
	if got := DefaultLink("rotate"); !reflect.DeepEqual(got, link) {
		t.Errorf("%+v, want %+v", got, link)
	}
	bilinear := link
	bilinear.Decoder, bilinear.Negatives, bilinear.Batch, bilinear.Init = "complex", 1000, 1024,
		0.01
	bilinear.LR, bilinear.Dropout, bilinear.EvalEvery, bilinear.Patience = 0.1, 0, 6, 0
	bilinear.Regularizer, bilinear.RegularizerWeight = "n3", 0.03
	if got := DefaultLink("complex"); !reflect.DeepEqual(got, bilinear) {
		t.Errorf("%+v, want %+v", got, bilinear)
	}
}
