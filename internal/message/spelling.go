package message

import "strings"

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
