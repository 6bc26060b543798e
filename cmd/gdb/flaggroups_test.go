package main

import (
	"slices"
	"testing"

	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// ownFlags name the run of a training, the snapshot it reads, and its output; they stand before the
// groups.
var ownFlags = []string{"task", "run", "resume", "from-run", "from", "at", "tensorboard",
	"checkpoint-every", "json", "search", "trials"}

// TestEachTrainingFlagIsInAGroup: a flag of train stands in a group of its help, and a setting is a
// flag of train, or of plan alone.
func TestEachTrainingFlagIsInAGroup(t *testing.T) {
	a := &app{}
	train, _, err := a.rootCommand().Find([]string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	train.LocalFlags().VisitAll(func(f *pflag.Flag) {
		own := slices.Contains(ownFlags, f.Name) || f.Name == "help"
		if own == slices.Contains(setting.Groups, groupOf(f.Name)) {
			t.Errorf("--%s is in the group %q", f.Name, groupOf(f.Name))
		}
	})
	for _, r := range setting.Rows {
		if r.In(setting.Train) != (train.LocalFlags().Lookup(r.Name) != nil) {
			t.Errorf("--%s is a flag of train, or its row says so, and not both", r.Name)
		}
	}
}
