package setting

import (
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout/rowfile"
	"gdb/train/columns"
)

// Data is what a training of nodes reads of the store.
type Data struct {
	// Split is the column K of train@K, val@K, test@K; "" is the store's default.
	Split string `json:"split"`
	// Normalize is how features are scaled as they are read: none, row (see
	// rowfile.NormalizeRows), zscore, or auto, which is row for counts and zscore for columns of
	// very different or large ranges. Scale are what zscore measured.
	Normalize string         `json:"normalize"`
	Scale     *rowfile.Scale `json:"scale,omitempty"`
	// EdgeScale is what was measured of Options.EdgeFeatures.
	EdgeScale *rowfile.Scale `json:"edge_scale,omitempty"`
	// Features says what models read of nodes: stored, the features that ingest stored, columns,
	// those that Encoders make of the columns of tables, or auto, which ResolveFeatures decides.
	Features string            `json:"features,omitempty"`
	Encoders *columns.Encoders `json:"encoders,omitempty"`
}

// The values of Data.Features, besides auto.
const (
	FeaturesStored  = "stored"
	FeaturesColumns = "columns"
)

// NormalizeRow as Data.Normalize has features divided by the sum of their row.
const NormalizeRow = "row"

// NormalizeColumns as Data.Normalize has each column of the features of mean 0 and deviation 1.
const NormalizeColumns = "zscore"

var dataRows = []*Row{
	{Name: "split-column", Field: "split", Alias: "split", For: OfNodes, InPlan: PlanValue,
		Group: GroupInputs, Help: "K, where the store has several splits: train@K, val@K and " +
			"test@K"},
	{Name: "normalize", For: OfNodes, Default: "auto", Unset: "none",
		Choices: []string{"auto", "none", NormalizeRow, NormalizeColumns}, Group: GroupInputs,
		Help: "scale features as they are read: none, row (sum 1), zscore (columns) or auto (row " +
			"for counts, zscore for very different or large ranges)"},
	{Name: "scale", For: OfNodes, Free: OfNodes, Type: measuredScale},
	{Name: "edge-scale", For: OfNodes, Free: OfNodes, Type: measuredScale},
	{Name: "features", For: OfNodes, Default: "auto", Unset: FeaturesStored, InPlan: PlanValue,
		Choices: []string{"auto", FeaturesStored, FeaturesColumns}, Group: GroupInputs,
		Help: "what models read of nodes: stored features, columns of the tables, encoded, with " +
			"the vectors among the features, or auto: stored ones if there are any"},
	{Name: "encoders", For: OfNodes, Free: OfNodes, Type: measuredEncoders},
}

// ResolveFeatures replaces auto by what it means for a store.
func (c *Node) ResolveFeatures(m *kv.Meta) error {
	tables := slices.ContainsFunc(m.NodeTypes, func(t kv.NodeTypeMeta) bool {
		return len(t.Columns) > 0
	})
	switch {
	case c.Features == "auto" && len(m.Features) == 0 && tables:
		c.Features = FeaturesColumns
	case c.Features == "auto", c.Features == "":
		c.Features = FeaturesStored
	case c.Features == FeaturesColumns && !tables:
		return errors.New("train: --features columns: the store has no columns of tables: ingest " +
			"each type of nodes as a table (--nodes user=users.csv), or leave the flag out")
	}
	return nil
}

// measuredEncoders tells people what was measured, in short.
func measuredEncoders(fields []any) Value {
	return &parsed[*columns.Encoders]{fields[0].(**columns.Encoders), "",
		func(v *columns.Encoders) string {
			return fmt.Sprintf("of %d types, measured", len(v.Types))
		}, func(string) (*columns.Encoders, error) {
			return nil, errors.New("encoders are measured")
		}}
}

// measuredScale tells people what was measured, in short.
func measuredScale(fields []any) Value {
	return &parsed[*rowfile.Scale]{fields[0].(**rowfile.Scale), "", func(v *rowfile.Scale) string {
		return fmt.Sprintf("of %d columns, measured", len(v.Mean))
	}, func(string) (*rowfile.Scale, error) {
		return nil, errors.New("a scale is measured")
	}}
}

// Inputs is the width of a model's input on a store: a node's features, if there are any, and
// behind them its learned vector.
func (c *Node) Inputs(m *kv.Meta) int { return FeatureDim(m) + c.NodeEmbedding }

// FeatureDim is the width of the features of a store that models read; 0 if it has none.
func FeatureDim(m *kv.Meta) int {
	if len(m.Features) == 0 {
		return 0
	}
	return m.Features[0].Dim
}

// PacksFeatures says whether features are read as bfloat16: where learned vectors stand behind
// them, the input of a step is made of both.
func (c *Node) PacksFeatures() bool { return c.Half() && c.NodeEmbedding == 0 }

// RowDim is how many words of 4 bytes a node has of features in memory.
func (c *Node) RowDim(m *kv.Meta) int {
	if c.SparseWords > 0 {
		return c.SparseWords
	}
	if c.PacksFeatures() {
		return rowfile.PackedDim(FeatureDim(m))
	}
	return FeatureDim(m)
}
