package setting

// Identity says which run is trained.
type Identity struct {
	// Run names the run; "" takes the next free of r0001, r0002, ….
	Run string `json:"run"`
	// Resume names a run to go on with. What decides the result must be as it was: see SameResult.
	Resume string `json:"-" setting:"resume"`
	// FromRun names a run of the store whose weights a new run begins with; "" for none. See
	// SameModel.
	FromRun string `json:"from_run,omitempty"`
	// AsBefore takes all other settings from the run that is resumed.
	AsBefore bool `json:"-"`
	// Version is gdb's version, for the record.
	Version string `json:"-"`
}

var identityRows = []*Row{
	{Name: "run", For: OfBoth, Free: OfBoth, NotIn: BenchTrain | BenchLink,
		Help: "name of the run (default: next free r0001)"},
	{Name: "resume", For: OfBoth, Free: OfBoth, NotIn: BenchTrain | BenchLink,
		Help: "go on with this run"},
	{Name: "from-run", For: OfBoth, NotIn: BenchTrain | BenchLink,
		Help: "begin with the weights and settings of this run; what it did not know, such as " +
			"nodes that came later, begins anew"},
}
