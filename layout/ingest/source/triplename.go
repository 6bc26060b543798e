package source

import (
	"path"
	"regexp"
	"slices"

	"gdb/layout/ingest/input"
)

var name = regexp.MustCompile(`^(train|valid|val|dev|test)\.(tsv|txt)(\.gz|\.bz2|\.zst)?$`)

// order are the splits in the order in which their files are read.
var order = []string{"train", "val", "test"}

// tripleSplit is the split of a file by its name, train, val or test; "" if its name says none.
func tripleSplit(file string) string {
	m := name.FindStringSubmatch(path.Base(file))
	switch {
	case m == nil:
		return ""
	case m[1] == "valid" || m[1] == "dev":
		return "val"
	}
	return m[1]
}

// sortTriples puts files in the order of their splits, those of none last.
func sortTriples(files []string) {
	place := func(f string) int { return (slices.Index(order, tripleSplit(f)) + 4) % 4 }
	slices.SortStableFunc(files, func(a, b string) int { return place(a) - place(b) })
}

// tripleSplits are the splits of sorted files: all are of one, and some of train, or none is of
// any.
func tripleSplits(files []string) (splits []string, err error) {
	for _, f := range files {
		if s := tripleSplit(f); s != "" && !slices.Contains(splits, s) {
			splits = append(splits, s)
		}
	}
	if len(splits) == 0 {
		return nil, nil
	}
	if last := files[len(files)-1]; tripleSplit(last) == "" {
		return nil, input.Wrong(last, "name it train, valid or test too, or give it without "+
			"files of these names", "other files are splits, and its name says none")
	}
	if splits[0] != "train" {
		return nil, input.Wrong(files[0], "give train.tsv too; to have its triples split by "+
			"chance, give it another name, and --edge-split random=85/5/10",
			"there is no file of train triples beside it")
	}
	return splits, nil
}
