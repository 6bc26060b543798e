package setting

import (
	"slices"
	"strings"
)

// Tasks is a set of tasks: what is predicted.
type Tasks uint8

// The tasks.
const (
	OfNodes Tasks = 1 << iota
	OfLinks
	OfBoth = OfNodes | OfLinks
)

// Commands is a set of commands that take settings as flags.
type Commands uint8

// The commands. Those that train, or plan a training, have all settings but those of gdb plan
// alone.
const (
	Train Commands = 1 << iota
	Plan
	BenchTrain
	BenchLink
	// These take a run that was trained.
	Eval
	Predict
	Embed
	everywhere = Train | Plan | BenchTrain | BenchLink
)

// Row is a setting: what the command line, checks, records and plans have to know of it. Its value
// is a field of Node, Link or both, which the row finds by its name.
type Row struct {
	// Name is the flag's name. The row finds its field by the name in run.json, which is Name with
	// _ for -, unless Field or LinkField gives another; a field that is not recorded has that name
	// as its tag "setting". Fields names further fields that the flag sets.
	Name             string
	Field, LinkField string
	Fields           []string
	// Alias is an older name of the flag.
	Alias string
	For   Tasks
	// NotIn are commands that decide the setting themselves.
	NotIn Commands
	// Applied are commands on a run that was trained which have the flag too: what is not given is
	// as the run has it. AppliedHelp is their help, where it is another. AppliedLinks are those
	// that have it for runs of links too.
	Applied      Commands
	AppliedHelp  string
	AppliedLinks Commands
	// Global says that the program has the flag for all commands.
	Global bool

	// Type reads and writes the value, and LinkType that of links, where it is another; nil does as
	// the type of the field says.
	Type, LinkType Kind
	// Default is the value as the flag takes it, and LinkDefault that of links, where it is
	// another.
	Default, LinkDefault string
	// Unset is what an empty word means, which records have that were made before there was the
	// setting.
	Unset string
	// Choices are the words that there are, and LinkChoices those for links, where they are others.
	// Any says that other code checks them.
	Choices, LinkChoices []string
	Any                  bool
	// Gone are words that were choices once, and Instead says what to use now.
	Gone    []string
	Instead string
	// Check is what numbers must be, and LinkCheck that of links, where it is another.
	Check, LinkCheck *Check

	// Group is the part of the help that the flag stands in, and Help its text, in which {choices}
	// are the words, and {gdb} is the program; "" is a value that it finds itself and records.
	Group Group
	Help  string

	// Free are the tasks of which a run that is resumed may have another value: it does not change
	// what a run of that task comes to. KeptIf keeps the value of some runs of nodes though.
	Free   Tasks
	KeptIf func(c *Node) bool
	// Weights says that the weights of a run fit no model with another value.
	Weights bool
	// Beside says that no batch of a run of nodes depends on the setting.
	Beside bool
	// InPlan says what of the setting the time of a step, or of sampling, depends on.
	InPlan PlanKey
	// Needs are other settings of links without which it changes nothing.
	Needs []Need
}

// PlanKey is what of a setting the name of a plan has.
type PlanKey uint8

// The values of PlanKey: the value, or whether there is one; 0 is nothing.
const (
	_ PlanKey = iota
	PlanValue
	PlanWhether
)

// Need is a setting of links that another one is read with.
type Need struct {
	Without string // as the user is told
	Missing func(c *Link) bool
}

// Group is a part of the flags in help.
type Group string

// Groups lists the parts of the help in their order. Flags of no group stand before them.
var Groups = []Group{GroupModel, GroupInputs, GroupLearning, GroupEvaluation, GroupLink,
	GroupPartitions, GroupMemory, GroupPlace}

// The groups.
const (
	GroupModel      Group = "Model"
	GroupInputs     Group = "Neighbors and features"
	GroupLearning   Group = "Learning"
	GroupEvaluation Group = "Evaluation"
	GroupLink       Group = "Link prediction (--task link)"
	GroupPartitions Group = "Partitions of a graph that are in memory in turn"
	GroupMemory     Group = "Memory and reads"
	GroupPlace      Group = "Where it computes"
)

// Rows is the table: all settings of both tasks, in the order in which records show them.
var Rows = slices.Concat(identityRows, modelRows, neighborRows, timeRows,
	dataRows, partitionRows,
	learningRows, scheduleRows, evaluationRows, linkRows, cachingRows, placeRows, processRows)

// Find returns the setting of a flag, by its older name too; nil if there is none.
func Find(flag string) *Row {
	for _, r := range Rows {
		if r.Name == flag || r.Alias != "" && r.Alias == flag {
			return r
		}
	}
	return nil
}

// Choices returns the words that a flag may have; nil for a flag with more than a few.
func Choices(flag string) []string {
	if r := Find(flag); r != nil {
		return r.Choices
	}
	return nil
}

// In says whether a command has the setting as a flag of its own.
func (r *Row) In(c Commands) bool {
	return r.Help != "" && !r.Global && r.NotIn&c == 0 && r.For&c.tasks() != 0
}

// TellsDefault says whether the help has the default in its own words.
func (r *Row) TellsDefault() bool { return strings.Contains(r.Help, "(default") }

// tasks returns the tasks that the commands train for.
func (c Commands) tasks() (t Tasks) {
	if c&^BenchLink != 0 {
		t |= OfNodes
	}
	if c&^BenchTrain != 0 {
		t |= OfLinks
	}
	return t
}

// field returns the name of the field of a task.
func (r *Row) field(t Tasks) string {
	switch {
	case t == OfLinks && r.LinkField != "":
		return r.LinkField
	case r.Field != "":
		return r.Field
	}
	return strings.ReplaceAll(r.Name, "-", "_")
}

// names are the names of all fields of a task.
func (r *Row) names(t Tasks) []string { return append([]string{r.field(t)}, r.Fields...) }

// kind returns how the value of a task is read and written.
func (r *Row) kind(t Tasks) Kind {
	switch {
	case t == OfLinks && r.LinkType != nil:
		return r.LinkType
	case r.Type != nil:
		return r.Type
	}
	return plain
}

// choices returns the words that a task may have.
func (r *Row) choices(t Tasks) []string {
	if t == OfLinks && r.LinkChoices != nil {
		return r.LinkChoices
	}
	return r.Choices
}

// check returns what a number of a task must be; nil for any.
func (r *Row) check(t Tasks) *Check {
	if t == OfLinks && r.LinkCheck != nil {
		return r.LinkCheck
	}
	return r.Check
}

// byDefault returns the default of a task.
func (r *Row) byDefault(t Tasks) string {
	if t == OfLinks && r.LinkDefault != "" {
		return r.LinkDefault
	}
	return r.Default
}
