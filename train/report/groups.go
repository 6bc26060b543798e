package report

import (
	"cmp"
	"slices"
)

// groupsMost is how many groups a picture tells apart; nodes of others are one more.
const groupsMost = 9

// The names of groups that no class has.
const (
	groupOther = "others"
	groupNone  = "no label"
)

// groups returns the groups of a picture for what each node is, "" for nothing: the names of the
// most frequent, and the place of each node's group among them. Without any name there are none.
func groups(of []string) (names []string, group []int) {
	counts := map[string]int{}
	for _, name := range of {
		counts[name]++
	}
	unnamed := counts[""]
	delete(counts, "")
	group = make([]int, len(of))
	if len(counts) == 0 {
		return nil, group
	}
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(names) > groupsMost {
		names = append(names[:groupsMost], groupOther)
	}
	if unnamed > 0 {
		names = append(names, groupNone)
	}
	for i, name := range of {
		switch at := slices.Index(names[:min(len(names), groupsMost)], name); {
		case name == "":
			group[i] = len(names) - 1
		case at >= 0:
			group[i] = at
		default:
			group[i] = groupsMost
		}
	}
	return names, group
}
