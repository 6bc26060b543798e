package setting

// Words that settings may have, of which packages above this one have what they stand for; their
// tests hold the two against each other.
var (
	// Models are the architectures of train/model.
	Models = []string{"sage", "gcn", "gat", "gatv2", "gin", "sgc", "mlp", "rgcn",
		"hsage", "hgt", "rgat"}
	// NodeLosses and NodeMetrics name what train/task computes.
	NodeLosses  = []string{"auto", "softmax", "bce", "mse", "mae", "huber"}
	NodeMetrics = []string{"auto", "accuracy", "micro-f1", "macro-f1", "roc-auc", "pr-auc",
		"rmse", "mae", "r2"}
	// Decoders and LinkLosses name what train/link/decoder computes.
	Decoders   = []string{"distmult", "complex", "transe", "rotate", "dot"}
	LinkLosses = []string{LossSoftmax, "logistic", LossMargin, LossAdversarial}
)

// Losses of links that other settings belong to.
const (
	LossSoftmax     = "softmax"
	LossMargin      = "margin"
	LossAdversarial = "adversarial"
)

// Where a training computes: the words of compute/backend.
const (
	BackendAuto = "auto"
	BackendCPU  = "cpu"
	BackendCUDA = "cuda"
)

// The values of NodeLearning.ClassWeights, as package task reads them.
const (
	WeightsNone     = "none"
	WeightsBalanced = "balanced"
)
