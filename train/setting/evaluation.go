package setting

// Schedule is how long a training goes on, and when it is evaluated.
type Schedule struct {
	// Epochs is the most epochs that are trained; EpochsAuto, of nodes, is as many as Resolve finds
	// right, and then Patience too.
	Epochs int `json:"epochs"`
	// Patience is how many evaluations in a row may be no better before the run stops; 0 never
	// stops it.
	Patience int `json:"patience"`
	// EvalEvery is how many epochs lie between two evaluations on the validation nodes, or edges.
	EvalEvery int `json:"eval_every"`
}

// Evaluation is how trainings of nodes are judged.
type Evaluation struct {
	// Metric is one of NodeMetrics.
	Metric string `json:"metric"`
	// EvalMode is exact (layer by layer over the whole graph), EvalSampled (with Fanout), or auto,
	// which is exact where that can be.
	EvalMode string `json:"eval_mode"`
	// AtPrecision has the threshold of the second of two classes, or of each of several labels a
	// node, be the one of highest recall among those with this precision on val; 0 takes that of
	// the highest F1 for several labels, and none for two classes.
	AtPrecision float64 `json:"at_precision,omitempty"`
}

// Ranking is how trainings of links are judged.
type Ranking struct {
	// Candidates is how many entities each end is ranked among; 0 is all.
	Candidates int `json:"candidates"`
}

// EpochsAuto as Schedule.Epochs trains until validation stops improving.
const EpochsAuto = 0

// EvalSampled is the mode of evaluation that draws neighbors.
const EvalSampled = "sampled"

// Better says whether a value of a metric is better than another: of errors the least is.
func Better(metric string, v, than float64) bool {
	if metric == "rmse" || metric == "mae" {
		return v < than
	}
	return v > than
}

var scheduleRows = []*Row{
	{Name: "epochs", For: OfBoth, Type: countOrAuto, LinkType: plain, Default: "auto",
		LinkDefault: "36",
		Check:       atLeast(0), LinkCheck: atLeast(1), Free: OfBoth,
		KeptIf: func(c *Node) bool { return !c.Extends() }, Group: GroupLearning,
		Help: "epochs to train; auto: until val does not improve any more"},
	{Name: "patience", For: OfBoth, LinkDefault: "3", Check: atLeast(0), Free: OfBoth,
		NotIn:  BenchTrain | BenchLink,
		KeptIf: func(c *Node) bool { return c.LRSchedule == SchedulePlateau },
		Group:  GroupEvaluation, Help: "stop after so many evaluations without a better one; 0: " +
			"never, but for --epochs auto"},
	{Name: "eval-every", For: OfBoth, NotIn: BenchTrain, Default: "1", LinkDefault: "3",
		Check: atLeast(1), Group: GroupEvaluation, Help: "epochs between evaluations"},
}

var evaluationRows = []*Row{
	{Name: "metric", For: OfNodes, NotIn: BenchTrain, Default: "auto", Choices: NodeMetrics,
		Group: GroupEvaluation, Help: "what val and test are judged by: {choices}"},
	{Name: "eval-mode", For: OfNodes, NotIn: BenchTrain, Default: "auto", Unset: "exact",
		Choices: []string{"auto", "exact", EvalSampled}, Group: GroupEvaluation,
		Help: "exact (whole lists, layer by layer), sampled (as batches of training are; " +
			"faster, noisy), or auto: exact where that can be"},
	{Name: "at-precision", For: OfNodes, NotIn: BenchTrain, Check: aShare, Group: GroupEvaluation,
		Help: "of two classes, predict the second above the threshold of the highest recall at " +
			"this precision on val"},
	{Name: "candidates", For: OfLinks, Check: atLeast(0), Group: GroupEvaluation,
		Help: "with --task link, entities that an end is ranked among; 0: all"},
}
