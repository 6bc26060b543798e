package cli

import (
	"fmt"

	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// taskOf annotates a flag that only runs of one task have.
const taskOf = "gdb_task"

// taskWords say what runs of a task predict.
var taskWords = map[setting.Tasks]string{setting.OfNodes: "nodes", setting.OfLinks: "links"}

// OnlyFor says of flags that only runs of a task have them.
func OnlyFor(f *pflag.FlagSet, task setting.Tasks, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, taskOf, []string{taskWords[task]}); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}

// Asks names a flag that was given and that only runs of a task have; "" for none.
func Asks(given *pflag.FlagSet, task setting.Tasks) (name string) {
	given.Visit(func(f *pflag.Flag) {
		if is := f.Annotations[taskOf]; name == "" && len(is) > 0 && is[0] == taskWords[task] {
			name = f.Name
		}
	})
	return name
}

// CheckTask refuses flags that were given to a run of another task than the one that they are for.
func CheckTask(given *pflag.FlagSet, run string, task setting.Tasks) error {
	other := setting.OfBoth &^ task
	if name := Asks(given, other); name != "" {
		return Usage(fmt.Errorf("--%s is for runs that predict %s, and %s does not: leave it out",
			name, taskWords[other], run))
	}
	return nil
}

// Finished is the end of a run, as train prints it.
type Finished struct {
	// Cost says what the run cost beside the plan; "" where there was none.
	Cost string
	// Line is the last line on standard output, and Done that of --json.
	Line string
	Done any
	// Advice are lines for the user, and Next the commands that may come next.
	Advice []string
	Next   [][]string
}

// PartOf is the annotation of flags that help shows apart from the others, under a title.
const PartOf = "part of"

// Part has help show flags under a title, behind all others.
func Part(f *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, PartOf, []string{title}); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}
