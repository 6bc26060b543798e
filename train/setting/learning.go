package setting

import "errors"

// ErrDiverged says that a training diverged, mostly by its rate: its loss, or a score, is not a
// number, or grew for long.
var ErrDiverged = errors.New("the training diverged")

// Learning is how weights are changed, in steps over batches.
type Learning struct {
	// Batch is the number of seeds of a step, or of edges; with all entities as negatives of
	// queries.
	Batch int `json:"batch"`
	// LR is the learning rate.
	LR float64 `json:"lr"`
	// LRSchedule is how the rate changes from epoch to epoch: one of the schedules; a run of links
	// is constant, or halves the rate when val did not improve in PlateauWaitLink evaluations.
	LRSchedule string `json:"lr_schedule"`
	// Dropout is the share of values zeroed before each layer in training, or of the values of
	// queries; DropoutAuto, of nodes, is what Resolve finds right for the labels.
	Dropout float64 `json:"dropout"`
	// Optimizer is adam, adamw, sgd or adagrad; of links adagrad or adam.
	Optimizer string `json:"optimizer"`
	// Loss is one of NodeLosses or LinkLosses.
	Loss string `json:"loss"`
}

// NodeLearning is what trainings of nodes have of it alone.
type NodeLearning struct {
	// Warmup is the number of steps in which the rate grows evenly to what it is then.
	Warmup int `json:"warmup"`
	// Clip is the most that the norm of the gradients of all parameters may be, which are scaled
	// down where it is more; 0 is any.
	Clip float64 `json:"clip"`
	// WeightDecay is added to the gradient as WeightDecay times the weights; adamw shrinks the
	// weights by LR*WeightDecay instead.
	WeightDecay float64 `json:"weight_decay"`
	// ClassWeights is none, or balanced: classes count in the loss as task.Balanced says.
	ClassWeights string `json:"class_weights"`
}

// DropoutAuto as Learning.Dropout is 0.5 where labels are classes, and none where they are numbers.
const DropoutAuto = -1

var learningRows = []*Row{
	{Name: "batch", For: OfBoth, Default: "1000", LinkDefault: "512", Check: atLeast(1),
		InPlan: PlanValue, Group: GroupInputs, Help: "seeds in a batch"},
	{Name: "lr", Beside: true, For: OfBoth, Default: "0.01", LinkDefault: "0.1", Check: positive,
		Group: GroupLearning, Help: "learning rate"},
	{Name: "lr-schedule", Beside: true, For: OfBoth,
		Default: ScheduleConstant, Unset: ScheduleConstant,
		Choices:     []string{ScheduleConstant, ScheduleCosine, ScheduleStep, SchedulePlateau},
		LinkChoices: []string{ScheduleConstant, SchedulePlateau}, Group: GroupLearning,
		Help: "constant; cosine: to 0 in --epochs (of auto: the most it may come to); step: a " +
			"tenth after half of them, a hundredth after three quarters; plateau: halved when " +
			"val is no better"},
	{Name: "warmup", Beside: true, For: OfNodes, Check: atLeast(0), Group: GroupLearning,
		Help: "steps in which the rate grows to its own"},
	{Name: "clip", Beside: true, For: OfNodes, Group: GroupLearning,
		Check: notNegative.saying("the most that the norm of the gradients may be, or 0 for any"),
		Help:  "most that the norm of all gradients may be: scaled down to it; 0: any"},
	{Name: "weight-decay", Beside: true, For: OfNodes, Default: "0.0005", Check: notNegative,
		Group: GroupLearning, Help: "weight decay"},
	{Name: "dropout", Beside: true, For: OfBoth,
		Type: shareOrAuto, LinkType: plain, Default: "auto",
		LinkDefault: "0",
		Check:       share.orAuto(DropoutAuto), LinkCheck: share, InPlan: PlanWhether,
		Group: GroupLearning,
		Help:  "share of values dropped before each layer; auto: 0.5 of classes, 0 of numbers"},
	{Name: "optimizer", Beside: true, For: OfBoth, Default: "adam", LinkDefault: "adagrad",
		Choices: []string{"adam", "adamw", "sgd", "adagrad"}, LinkChoices: LinkOptimizers,
		InPlan: PlanValue, Group: GroupLearning, Help: "{choices}"},
	{Name: "loss", For: OfBoth, Default: "auto", LinkDefault: LossSoftmax, Choices: NodeLosses,
		LinkChoices: LinkLosses, Group: GroupLearning, Help: "{choices}"},
	{Name: "class-weights", Beside: true, For: OfNodes, Default: WeightsNone, Unset: WeightsNone,
		Choices: []string{WeightsNone, WeightsBalanced}, Group: GroupLearning,
		Help: "none, or balanced: rare classes count more in the loss, so that all count the same"},
}
