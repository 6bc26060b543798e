package setting

import "encoding/json"

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
	// Bases is the number of matrices that those of relations are sums of, of rgcn; 0 is 8, or as
	// many as there are relations. Relations is the number of types of edges of the store.
	Bases     int `json:"bases,omitempty"`
	Relations int `json:"relations,omitempty"`
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

// OptionValues are the values that options may have, by their names.
func OptionValues(name string) []string {
	switch name {
	case "aggregate":
		return []string{"auto", "mean", "max", "sum"}
	case "norm":
		return []string{"none", "layer", "batch"}
	case "activation":
		return []string{"auto", "relu", "elu", "gelu"}
	}
	return nil
}
