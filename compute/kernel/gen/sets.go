//go:build avogen

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
)

// setTypes are the kernels that come in several sizes, with their types in Go. A set of them is a
// slice by size, from one vector on.
var setTypes = map[string]string{"segmentSum": "segmentFunc", "weightedSum": "weightedFunc",
	"columnSum": "columnFunc", "edgeSum": "edgeFunc", "edgeDot": "edgeFunc",
	"edgeScore": "scoreFunc", "edgeScoreGrad": "scoreFunc", "edgeScoreOwnGrad": "scoreFunc",
	"segmentMax": "maxFunc", "segmentMaxGrad": "maxGradFunc", "gatherSum": "sumFunc",
	"gatherMax": "maxFunc", "weightedAll": "weightedFunc", "weightedPair": "weightedFunc"}

// kernelName takes the name of a kernel apart: its family, its instructions and its sizes, as in
// segmentSumAVX2_1 and tileDot_12x2.
var kernelName = regexp.MustCompile(`(?m)^func (([a-zA-Z]+?)(AVX2|AVX512|Dot))_(\d+)(?:x(\d+))?\(`)

// sized is a kernel of some size.
type sized struct {
	name    string
	family  string
	number  int // of vectors, of rows or of heads
	vectors int // of kernels with two sizes
}

// appendSets adds the sets of a family's kernels to their declarations: tiles by their vectors and
// then by their rows, the tallest first, and heads with the widest first.
func appendSets(file string) error {
	text, err := os.ReadFile(file) //lint:os what the generator wrote
	if err != nil {
		return err
	}
	sets := map[string][]sized{}
	for _, m := range kernelName.FindAllStringSubmatch(string(text), -1) {
		k := sized{name: m[1] + "_" + m[4], family: m[2]}
		k.number, _ = strconv.Atoi(m[4])
		if m[5] != "" {
			k.name += "x" + m[5]
			k.vectors, _ = strconv.Atoi(m[5])
		}
		sets[m[1]] = append(sets[m[1]], k)
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		set := sets[name]
		switch kind := setTypes[set[0].family]; {
		case set[0].family == "tile":
			text = fmt.Appendf(text, "\nvar %s = [2][]tileFunc{{\n", name)
			for _, vectors := range []int{1, 2} {
				if vectors == 2 {
					text = append(text, "}, {\n"...)
				}
				for _, k := range set {
					if k.vectors == vectors {
						text = fmt.Appendf(text, "\t%s,\n", k.name)
					}
				}
			}
			text = append(text, "}}\n"...)
		case set[0].family == "weightedHeads":
			slices.SortStableFunc(set, func(a, b sized) int {
				return cmp.Or(b.number-a.number, a.vectors-b.vectors)
			})
			text = fmt.Appendf(text, "\nvar %s = []headsFunc{\n", name)
			for _, k := range set {
				text = fmt.Appendf(text, "\t{%d, %d, %s},\n", k.number, k.vectors, k.name)
			}
			text = append(text, "}\n"...)
		case kind != "":
			text = fmt.Appendf(text, "\nvar %s = []%s{\n", name, kind)
			for _, k := range set {
				text = fmt.Appendf(text, "\t%s,\n", k.name)
			}
			text = append(text, "}\n"...)
		}
	}
	return os.WriteFile(file, text, 0o644) //lint:os source code
}
