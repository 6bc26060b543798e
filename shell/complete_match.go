package shell

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gdb/kv"
	"gdb/shell/lang"
)

// matchWords says what the words and signs of MATCH mean.
var matchWords = map[string]string{
	"WHERE": "only matches for which this holds", "RETURN": "what of each match",
	"DISTINCT": "each row once", "AS": "a name for the column", "AND": "both hold; binds before OR",
	"OR": "one of them holds", "ORDER": "sort by an item of RETURN", "BY": "an item of RETURN",
	"DESC": "the greatest first", "ASC": "the least first", "LIMIT": "the first rows only",
	"IN": "nodes of a split, or one of a list: [1, 2]", "SPLIT": "the nodes of a split",
	"(": "a node, such as (a {id: 42}) or (b)", ")": "the end of the node",
	"{id:": "the node with this id", "}": "the end of the id", "id": "the node with this id",
	":": "the value", "[": "the edge", "]": "the end of the hop", "*1..2": "one or two hops",
	"-[": "a hop along edges, or either way", "<-[": "a hop against edges", "-": "either way",
	"->": "along edges",
}

// choiceTexts says what the choices of clauses mean.
var choiceTexts = map[string]string{
	"none": "holds nothing", "static": "the nodes in the most lists, loaded at the start",
	"static-sampled": "the nodes that a sampled epoch asks for most, loaded at the start",
	"lru":            "the least recently used row makes room",
	"clock":          "nearly lru, for less",
	"s3fifo":         "new rows must be asked for twice to stay",
	"sieve":          "rows stay that were asked for since the hand passed",
	"belady":         "the bound: it knows the batches to come",
	"dense":          "the arrays of the batch", "layers": "the sizes of each layer",
	"edges": "what was drawn", "io": "the blocks it took",
	"uniform": "every neighbor is as likely", "weighted": "by the weights of edges",
	"latest": "those of the latest edges",
	"full":   "whole lists", "policy": "with capacity and bytes saved", "file": "of the store",
	"partition": "what is held of each", "epoch": "of a run",
	"cosine": "of the angle between vectors", "dot": "their product",
	"euclid": "minus the distance between them",
	"phase":  "opening a file, or asking", "op": "the operator that read",
}

// aggregateTexts says what the functions of RETURN do.
var aggregateTexts = map[string]string{"count": "how many: count(*), or those with a value",
	"min": "the least", "max": "the greatest", "avg": "the mean"}

// placeValues returns the values that may stand at a place of a MATCH.
func placeValues(m *kv.Meta, at *lang.MatchPlace) (all []candidate) {
	if at.InHop {
		for _, t := range m.EdgeTypes {
			all = append(all, candidate{word: ":" + nameCandidate(t, "").word, help: "edge type"})
		}
		return all
	}
	if at.InOrder {
		for _, i := range at.Query.Items {
			all = append(all, candidate{word: i.As, help: "as in RETURN"})
		}
		return all
	}
	if at.Left != nil {
		all = comparedWith(m, at.Left)
	}
	for _, n := range at.Query.Nodes {
		twice := slices.ContainsFunc(all, func(c candidate) bool { return c.word == n.Name })
		if n.Name == "" || twice {
			continue
		}
		all = append(all, candidate{word: n.Name, help: "a node, by its id"})
		if m.Labels != nil {
			all = append(all, candidate{word: n.Name + ".label", help: "its label"})
		}
		all = append(all, featureCandidates(m, n.Name)...)
	}
	for _, h := range at.Query.Hops {
		for _, prop := range edgeProps(m) {
			if h.Name != "" {
				all = append(all, candidate{word: h.Name + "." + prop, help: "of the edge"})
			}
		}
	}
	if at.InReturn {
		for _, f := range lang.Aggregates {
			all = append(all, candidate{word: f + "(", help: aggregateTexts[f]})
		}
	}
	return all
}

// featuresOffered is the largest number of features that completion lists by name.
const featuresOffered = 100

// featureCandidates returns the features of a node as candidates.
func featureCandidates(m *kv.Meta, node string) (all []candidate) {
	if len(m.Features) == 0 {
		return nil
	}
	columns := m.FeatureColumns(m.Features[0])
	if !columns.Named() {
		return []candidate{{word: node + ".f0",
			help: fmt.Sprintf("a feature, f0 to f%d", m.Features[0].Dim-1)}}
	}
	for _, name := range columns.Names()[:min(m.Features[0].Dim, featuresOffered)] {
		word := name
		sign := func(r rune) bool { return r < utf8.RuneSelf && !lang.IsWord(byte(r)) }
		if strings.ContainsFunc(name, sign) {
			word = "'" + strings.ReplaceAll(name, "'", "''") + "'"
		}
		all = append(all, candidate{word: node + "." + word, help: "a feature"})
	}
	return all
}

// edgeProps returns the properties that the edges of the store have.
func edgeProps(m *kv.Meta) (props []string) {
	for _, p := range []struct {
		name string
		has  bool
	}{{"type", len(m.EdgeTypes) > 0}, {"weight", m.Weighted}, {"time", m.Timestamped}} {
		if p.has {
			props = append(props, p.name)
		}
	}
	return props
}

// comparedWith returns the values that a label or a type may be compared with.
func comparedWith(m *kv.Meta, left *lang.MatchExpr) (all []candidate) {
	switch {
	case left.Prop == "label" && m.Labels != nil:
		for _, c := range m.Labels.Classes {
			all = append(all, candidate{word: lang.Literal(c), help: "label", name: c})
		}
	case left.Prop == "type":
		for _, t := range m.EdgeTypes {
			all = append(all, candidate{word: lang.Literal(t), help: "edge type", name: t})
		}
	}
	return all
}
