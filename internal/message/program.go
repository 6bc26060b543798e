// Package message makes the program's messages fit for people: the name of the program in commands
// that it proposes (Program), a word that was probably meant by another (Nearest), lists of words
// (OneOf), and lines wrapped at the width of a screen (Wrap, Writer).
package message

import (
	"slices"
	"strings"
)

// Program is the name by which the program was called. GNU's debugger is called gdb too, so this
// one may have been built under another name. Only main sets it, before anything else runs.
var Program = "gdb"

// partNames are packages that put their names before their errors.
var partNames = []string{"kv", "layout", "loader", "sample", "codec", "blockdev", "rowfile",
	"listfile"}

// Plain removes the names of the program's packages from a message of nested errors, outermost
// first, since they mean nothing to a user.
func Plain(message string) string {
	errs := strings.Split(message, ": ")
	last := len(errs) - 1
	return strings.Join(append(slices.DeleteFunc(errs[:last:last], func(name string) bool {
		return slices.Contains(partNames, name)
	}), errs[last]), ": ")
}

// OneOf joins words: "a, b or c".
func OneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// First joins the first names of a list, with … for those after the first most.
func First(names []string, most int) string {
	sep := " "
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, " ") }) {
		sep = ", "
	}
	if len(names) <= most {
		return strings.Join(names, sep)
	}
	return strings.Join(names[:most], sep) + " …"
}

// Distance returns the Levenshtein distance: the number of bytes to insert, delete or replace to
// turn a into b. It takes time O(len(a)·len(b)), and memory O(len(b)).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Nearest returns the word of list that word may be a misspelling of, without regard to case; "" if
// there is none.
func Nearest(word string, list []string) string {
	best, least := "", 1+len(word)/3
	for _, w := range list {
		if d := Distance(strings.ToLower(word), strings.ToLower(w)); d <= least {
			best, least = w, d-1
		}
	}
	return best
}
