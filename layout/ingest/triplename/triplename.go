// Package triplename knows the names of the files of a knowledge graph: which split the triples of
// a file are in.
package triplename

import (
	"path"
	"regexp"
	"slices"

	"gdb/layout/ingest/input"
)

var name = regexp.MustCompile(`^(train|valid|val|dev|test)\.(tsv|txt)(\.gz|\.bz2|\.zst)?$`)

// order are the splits in the order in which their files are read.
var order = []string{"train", "val", "test"}

// Split is the split of a file by its name, train, val or test; "" if its name says none.
func Split(file string) string {
	m := name.FindStringSubmatch(path.Base(file))
	switch {
	case m == nil:
		return ""
	case m[1] == "valid" || m[1] == "dev":
		return "val"
	}
	return m[1]
}

// Sort puts files in the order of their splits, those of none last.
func Sort(files []string) {
	place := func(f string) int { return (slices.Index(order, Split(f)) + 4) % 4 }
	slices.SortStableFunc(files, func(a, b string) int { return place(a) - place(b) })
}

// Splits are the splits of sorted files: all are of one, and some of train, or none is of any.
func Splits(files []string) (splits []string, err error) {
	for _, f := range files {
		if s := Split(f); s != "" && !slices.Contains(splits, s) {
			splits = append(splits, s)
		}
	}
	if len(splits) == 0 {
		return nil, nil
	}
	if last := files[len(files)-1]; Split(last) == "" {
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
