package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// ownFlags name the run of a training and its output; they stand before the groups.
var ownFlags = []string{"task", "run", "resume", "from", "tensorboard", "checkpoint-every", "json"}

// TestEachTrainingFlagIsInAGroup: a flag of train is in one group, and a group has no flag that is
// not there.
func TestEachTrainingFlagIsInAGroup(t *testing.T) {
	a := &app{}
	train, _, err := a.rootCommand().Find([]string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, g := range trainingGroups {
		for _, name := range g.flags {
			times[name]++
			if train.Flags().Lookup(name) == nil {
				t.Errorf("group %q has --%s, which train does not have", g.title, name)
			}
		}
	}
	train.LocalFlags().VisitAll(func(f *pflag.Flag) {
		own := slices.Contains(ownFlags, f.Name) || f.Name == "help"
		if own == (times[f.Name] == 1) || times[f.Name] > 1 {
			t.Errorf("--%s is in %d groups", f.Name, times[f.Name])
		}
	})
}
