package setting

// Identity says which run is trained.
type Identity struct {
	// Run names the run; "" takes the next free of r0001, r0002, ….
	Run string `json:"run"`
	// Resume names a run to go on with. What decides the result must be as it was: see SameResult.
	Resume string `json:"-" setting:"resume"`
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
}
