package setting

import (
	"slices"

	"gdb/kv"
)

const (
	// stepsMost and epochsLeast bound a training of EpochsAuto: small graphs have an epoch of one
	// step, so it is counted in steps, but nodes are seen a few times at least.
	stepsMost, epochsLeast, epochsMost = 4000, 30, 300
	// stepsPatient and evaluationsPatient are how long validation may go without a better one.
	// Of two skewed classes the score rises slowly, for longer than of others, and goes down
	// between: they get stepsPatientSkewed (minesweeper: .897 instead of .892).
	stepsPatient, stepsPatientSkewed, evaluationsPatient = 30, 150, 5
)

// dropoutClasses is the Dropout of classes. Numbers have none: what is summed up changes its scale
// by it.
const dropoutClasses = 0.5

// kindClass and kindNumbers are kinds of labels, as package task names them.
const kindClass, kindNumbers = "class", "target"

// Resolve replaces auto by what it means for a store, whose labels are trained as a kind of
// task.KindOf, "" where there are none: Normalize of counts and Dropout by features
// and labels, EpochsAuto by a number of epochs and of the Patience that ends them earlier, both by
// the steps that an epoch has. Normalize of other features is decided when they are read.
func (c *Node) Resolve(m *kv.Meta, kind string) {
	c.Normalize = ResolveNormalize(c.Normalize, m)
	if c.Dropout == DropoutAuto {
		c.Dropout = dropoutClasses
		if kind == kindNumbers {
			c.Dropout = 0
		}
	}
	if c.Epochs != EpochsAuto {
		return
	}
	steps := 1
	for _, s := range m.Splits {
		if s.Name == m.SplitName("train", c.Split) {
			steps = max(1, (int(s.Count)+c.Batch-1)/c.Batch)
		}
	}
	c.Epochs = min(max(epochsLeast, stepsMost/steps), epochsMost)
	if c.Patience == 0 {
		perEvaluation := steps * c.EvalEvery
		patient := stepsPatient
		if kind == kindClass &&
			Skewed(m.Labels.ClassCounts) {
			patient = stepsPatientSkewed
		}
		c.Patience = max(evaluationsPatient, (patient+perEvaluation-1)/perEvaluation)
	}
}

// ResolveNormalize replaces auto by what it means for the features of a store; it stays auto where
// features have to be read to tell.
func ResolveNormalize(normalize string, m *kv.Meta) string {
	switch {
	case normalize != "auto":
		return normalize
	case len(m.Features) == 0, m.Features[0].Sections != nil: // each type is scaled by ingest
		return "none"
	case slices.Contains(m.Stats.CountFeatures, m.Features[0].Name):
		return NormalizeRow
	}
	return normalize
}

// Skewed says whether of two classes one has a quarter of the nodes or less: always to say the
// other is right more often than not, so accuracy tells little.
func Skewed(counts []uint64) bool {
	return len(counts) == 2 && 4*min(counts[0], counts[1]) <= counts[0]+counts[1]
}
