package setting

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Architecture is the model of nodes.
type Architecture struct {
	// Model is the architecture: one of Models.
	Model string `json:"model"`
	// Hidden is the width of the layers between, unless Widths has those of each.
	Hidden int   `json:"hidden"`
	Widths []int `json:"widths,omitempty"`
	Options
	// Tune measures the orders of aggregation and product before the first step, and keeps the
	// fastest in Order: see model.Spec.
	Tune  bool    `json:"tune,omitempty"`
	Order *uint64 `json:"order,omitempty"`
}

// Options are what architectures have in common. The zero value is what each has by itself.
type Options struct {
	// Heads is the number of attention heads, of architectures that have them; 0 is 4.
	Heads int `json:"heads,omitempty"`
	// Aggregate is how the rows of a list become one: mean, max or sum; "" is the architecture's
	// own way.
	Aggregate string `json:"aggregate,omitempty"`
	// Residual adds a layer's input to its output, through a product where their widths differ.
	Residual bool `json:"residual,omitempty"`
	// Norm is what has mean 0 and variance 1 before the activation: none, layer (each row) or batch
	// (each column: over the rows of a batch in training, else by running means and variances of
	// batches). "" is none.
	Norm string `json:"norm,omitempty"`
	// Activation is relu, elu or gelu; "" is the architecture's own.
	Activation string `json:"activation,omitempty"`
	// InputDropout is the share of features that are dropped out; nil is as in the other layers.
	InputDropout *float64 `json:"input_dropout,omitempty"`
	// NodeEmbedding is the width of a vector that is learned for each node, and is the input of the
	// model behind the node's features; 0 is none.
	NodeEmbedding int `json:"node_embedding,omitempty"`
	// EdgeWeight has the weights of edges count, in architectures that can.
	EdgeWeight bool `json:"edge_weight,omitempty"`
	// EdgeFeatures are columns of edges that the model reads of each drawn edge: see
	// loader.EdgeColumns.
	EdgeFeatures []string `json:"edge_features,omitempty"`
	// Bases is the number of matrices that those of relations are sums of, of rgcn; 0 is 8, or as
	// many as there are relations. Relations is the number of types of edges of the store.
	Bases     int `json:"bases,omitempty"`
	Relations int `json:"relations,omitempty"`
	// NodeTypes are the first nodes of the types of nodes of a typed store, for a model that has
	// matrices for each, TypeWidths how many features they have, and RelationSources the types of
	// the sources of each type of edges.
	NodeTypes       []int `json:"node_types,omitempty"`
	TypeWidths      []int `json:"type_widths,omitempty"`
	RelationSources []int `json:"relation_sources,omitempty"`
	// SparseWords is how many words of 4 bytes a row of the features has that is read as it is
	// stored, as its entries alone; 0 for rows of all values.
	SparseWords int `json:"sparse_words,omitempty"`
	// Precompute has the sums that no parameters come before computed once, over whole lists: see
	// Precomputed.
	Precompute bool `json:"precompute,omitempty"`
}

// String names the options that are set.
func (o Options) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic("BUG: encode options: " + err.Error())
	}
	return string(b)
}

var modelRows = []*Row{
	{Name: "model", For: OfNodes, Weights: true,
		Default: "sage", Choices: Models, Any: true, InPlan: PlanValue,
		Group: GroupModel, Help: "architecture: {choices}"},
	{Name: "hidden", Beside: true, Fields: []string{"widths"}, For: OfNodes, Weights: true,
		Type: hiddenOf, Default: "256",
		Check: atLeast(1),
		Group: GroupModel, Help: "width of the hidden layers, or of each: 256,128"},
	{Name: "heads", Beside: true, For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupModel,
		Help: "attention heads of gat, gatv2, hgt and rgat (default 4)"},
	{Name: "aggregate", For: OfNodes, Weights: true, Unset: "auto",
		Choices: []string{"auto", "mean", "max", "sum"}, InPlan: PlanValue, Group: GroupModel,
		Help: "how sage, gcn, gin and sgc sum neighbors up: {choices} (default auto, the model's " +
			"own)"},
	{Name: "residual", Beside: true, For: OfNodes,
		Weights: true, InPlan: PlanValue, Group: GroupModel,
		Help: "add the input of each layer to its output; not of sgc, as --norm and --activation"},
	{Name: "norm", Beside: true, For: OfNodes, Weights: true,
		Unset: "none", Choices: []string{"none", "layer", "batch"},
		InPlan: PlanValue, Group: GroupModel,
		Help: "scale the hidden layers: {choices} (default none)"},
	{Name: "activation", Beside: true, For: OfNodes, Unset: "auto",
		Choices: []string{"auto", "relu", "elu", "gelu"}, InPlan: PlanValue, Group: GroupModel,
		Help: "{choices} (default auto, the model's own)"},
	{Name: "input-dropout", Beside: true, For: OfNodes, Type: optionalShare, InPlan: PlanValue,
		Group: GroupLearning, Help: "share of features dropped (default: as --dropout)"},
	{Name: "node-embedding", For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupModel,
		Help: "values learned for each node, behind its features if it has any; 0: none"},
	{Name: "edge-weight", For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupInputs,
		Help: "have the weights of edges count: sage, gcn, gin and sgc"},
	{Name: "edge-features", For: OfNodes, Weights: true,
		Type: words, InPlan: PlanValue, Group: GroupInputs,
		Help: "what sage, hsage and gat read of each drawn edge besides the neighbor: weight, " +
			"degree (log of 1 + the edges that could be drawn), columns of its table, with " +
			"commas"},
	{Name: "bases", For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupModel,
		Help: "matrices that those of relations are sums of, of rgcn (default 8, or the types of " +
			"edges)"},
	{Name: "relations", For: OfNodes, Weights: true, InPlan: PlanValue},
	{Name: "node-types", For: OfNodes, InPlan: PlanValue},
	{Name: "type-widths", For: OfNodes, Weights: true, InPlan: PlanValue},
	{Name: "relation-sources", For: OfNodes, Weights: true, InPlan: PlanValue},
	{Name: "sparse-words", For: OfNodes, Free: OfNodes, InPlan: PlanValue},
	{Name: "precompute", For: OfNodes, Weights: true, InPlan: PlanValue, Group: GroupModel,
		Help: "compute first sums of neighbors once, before training; not of attention"},
	{Name: "tune", For: OfNodes, Free: OfNodes, InPlan: PlanValue, Group: GroupModel,
		Help: "measure which order of sums and products is faster, and keep it in the run"},
	{Name: "order-of-operations", Field: "order", For: OfNodes, Free: OfNodes},
}

// hiddenOf is the value of --hidden.
func hiddenOf(fields []any) Value { return hiddenValue{fields[0].(*int), fields[1].(*[]int)} }

// hiddenValue is the width of the hidden layers, or one of each: 256 or 256,128.
type hiddenValue struct {
	width  *int
	widths *[]int
}

// String is the flag's value.
func (h hiddenValue) String() string {
	if len(*h.widths) == 0 {
		return strconv.Itoa(*h.width)
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*h.widths), " ", ","), "[]")
}

// Set takes a number, or several with commas between.
func (h hiddenValue) Set(s string) error {
	var widths []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no width: give a number, or one for each hidden layer, such "+
				"as 256,128", part)
		}
		widths = append(widths, n)
	}
	*h.width, *h.widths = widths[0], nil
	if len(widths) > 1 {
		*h.widths = widths
	}
	return nil
}

// Type is shown in help.
func (h hiddenValue) Type() string { return "widths" }
