package query

import (
	"slices"
	"testing"

	"gdb/sample/cachesim"
	"gdb/shell/lang"
	"gdb/train/runs/vectors"
)

// TestWordsOfTheLanguage compares the words that the grammar lists with what implements them.
func TestWordsOfTheLanguage(t *testing.T) {
	if want := vectors.Closenesses(); !slices.Equal(lang.Closenesses, want) {
		t.Errorf("the grammar has %v, and vectors compare by %v", lang.Closenesses, want)
	}
	if want := cachesim.PolicyNames(); !slices.Equal(lang.Policies, want) {
		t.Errorf("the grammar has %v, and caches are %v", lang.Policies, want)
	}
}
