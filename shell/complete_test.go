package shell

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCandidates holds what Tab offers: what the parser expects, then names of the catalog.
func TestCandidates(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "s", richGraph())
	s := &session{Options: Options{Store: store}}
	s.engine = newEngine(store, mustDevice(t), 64<<20)
	for text, want := range map[string]string{
		"NEI":                            "NEIGHBORS",
		"nei":                            "NEIGHBORS",
		"DEGREES; sta":                   "STATS",
		"STATS ":                         "GRAPH CACHE IO PARTITIONS BUCKETS",
		"STATS g":                        "GRAPH",
		"NEIGHBORS ":                     "RANDOM SPLIT",
		"NEIGHBORS 1 ":                   "IN OUT BOTH HOPS VIA COUNT LIMIT",
		"NEIGHBORS 1 IN ":                "HOPS VIA COUNT LIMIT",
		"NEIGHBORS 1 IN HOPS 2\n C":      "COUNT",
		"NEIGHBORS 1 VIA ":               "cites knows",
		"NEIGHBORS 1 VIA k":              "knows",
		"LABELS SPLIT ":                  "test train val",
		"LABELS SPLIT tr":                "train",
		"SAMPLE 1 FANOUT ":               "all",
		"SAMPLE 1 FANOUT 2,":             "all",
		"SAMPLE 1 FANOUT 2 SHOW d":       "dense",
		"BLOCK topology/in":              "topology/in.csc topology/in.idx",
		"NEIGBORS 1 ":                    "",
		"NEIGHBORS 'a":                   "",
		".mo":                            ".mode",
		".mode j":                        "json jsonl",
		".timing ":                       "on off",
		".help SAM":                      "SAMPLE",
		".read s/top":                    "s/topology/",
		".watch 2 DEG":                   "DEGREES",
		".xyzzy ":                        "",
		"DEGREES;\n.mode csv\nDEGREES T": "TOP",
	} {
		start, found := s.candidates(text, utf8.RuneCountInString(text))
		var words []string
		for _, c := range found {
			words = append(words, c.word)
			if strings.Contains(c.help, "\n") {
				t.Errorf("%s: the help of %s has several lines", text, c.word)
			}
		}
		got := strings.Join(words, " ")
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if start < 0 || start > len(text) {
			t.Errorf("%q: the word begins at %d", text, start)
		}
	}
}

// TestEveryKeywordIsExplained holds that no candidate lacks a description.
func TestEveryKeywordIsExplained(t *testing.T) {
	for _, h := range heads() {
		if wordHelp(nil, h) == "" {
			t.Errorf("%s has no description", h)
		}
	}
	for _, d := range dots {
		if d.help == "" || d.run == nil {
			t.Errorf(".%s lacks a help or a handler", d.name)
		}
	}
}

// TestHighlight holds which runes get a style, and that each rune has one.
func TestHighlight(t *testing.T) {
	paint := highlighter()
	text := "sample 'ü;' x; -- c\n.mode csv\n 'open"
	got := ""
	letters := map[string]string{"": ".", styleCyan: "k", styleGreen: "q", styleDim: "c",
		styleYellow: "d", styleRed: "r"}
	for _, s := range paint(text) {
		got += letters[s]
	}
	want := "kkkkkk.qqqq...." + "cccc" + "." + "ddddddddd" + "." + "." + "rrrrr"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
