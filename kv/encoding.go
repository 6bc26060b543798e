package kv

import "strings"

// FeatureEncoding says how rows of features are made of the columns of a table, so that rows which
// come later are made in the same way. Value k of a row is scaled to (x-Mean[k])*Inverse[k], unless
// these are empty.
type FeatureEncoding struct {
	Columns []EncodedColumn // in the order of their values in the row
	Mean    []float32       `json:",omitempty"`
	Inverse []float32       `json:",omitempty"`
}

// EncodedColumn is a column that features are made of: Dim numbers, with an indicator behind them
// for each that Gaps says has one, which is 1 where the number is missing; or, of a category, a
// value for each word, which is 1 for the word of the row.
type EncodedColumn struct {
	Name     string
	Dim      int       `json:",omitempty"`
	List     bool      `json:",omitempty"` // the numbers are a list in the source
	Category bool      `json:",omitempty"`
	Words    []string  `json:",omitempty"`
	Fill     []float32 `json:",omitempty"` // what a missing number is; empty where it is an error
	Gaps     []bool    `json:",omitempty"`
}

// Width returns how many values of a row the column makes.
func (c *EncodedColumn) Width() int {
	n := c.Dim + len(c.Words)
	for _, gap := range c.Gaps {
		if gap {
			n++
		}
	}
	return n
}

// Rescaled says how ingest scaled the features of the store: by which flag, or of which type. It is
// "" where rows are as the source has them.
func (m *Meta) Rescaled() string {
	for _, arg := range m.Source.Args {
		if how, ok := strings.CutPrefix(arg, "--normalize="); ok && how != "none" {
			return "--normalize " + how
		}
	}
	for _, t := range m.NodeTypes {
		if t.Encoding != nil && len(t.Encoding.Mean) > 0 {
			return "those of " + t.Name
		}
	}
	return ""
}
