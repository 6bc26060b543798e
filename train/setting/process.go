package setting

// Process is what a training takes of the machine, and the root of its randomness.
type Process struct {
	// Seed is the root of all randomness.
	Seed uint64 `json:"seed"`
	// Threads is the number of compute workers; 0 takes all cores. The weights of trainings of
	// nodes depend on it, those of links do not.
	Threads int `json:"threads"`
	// Memory bounds the process in bytes; 0 takes half of what the machine allows.
	Memory int64 `json:"memory"`
	// CheckpointEvery is the number of batches between checkpoints within an epoch; one is
	// written every 30 s and after each epoch too. 0 leaves it at that.
	CheckpointEvery int `json:"checkpoint_every"`
}

var processRows = []*Row{
	{Name: "seed", For: OfBoth, Global: true, Default: "1", Help: "seed of every random choice"},
	{Name: "threads", For: OfBoth, Global: true, Free: OfLinks, Check: atLeast(0),
		InPlan: PlanValue, Help: "compute workers"},
	{Name: "memory", For: OfBoth, Global: true, Free: OfBoth, Help: "bound of the process's " +
		"memory, such as 4GiB (default: half of what is allowed here)"},
	{Name: "checkpoint-every", For: OfBoth, Free: OfBoth, NotIn: BenchTrain | BenchLink,
		Check: atLeast(0),
		Help:  "batches between checkpoints; one is written every 30 s and each epoch too"},
}
