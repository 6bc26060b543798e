package shell

import (
	"strings"
	"testing"

	"gdb/shell/lang"
)

// TestNextItem holds where statements and dot commands end.
func TestNextItem(t *testing.T) {
	text := " ; \n-- it's; a comment\n.mode csv\nA 'x;y'; .read 'a b'; \n" +
		"B\n-- no; end\n 'it''s';\n C"
	want := []string{".mode csv", "A 'x;y';", ".read 'a b';", "B\n-- no; end\n 'it''s';", "C"}
	for i, w := range want {
		item, rest, whole := nextItem(text)
		if item != w || whole == (i == len(want)-1) {
			t.Fatalf("item %d is %q, ended %v; want %q", i, item, whole, w)
		}
		text = rest
	}
	for text, want := range map[string]bool{"A; -- it's": true, "A -- ;": false,
		"A -- ;\n;": true, "A \"it's\";": true, "A '\"';": true, "A \";": false, "A a--b;": true,
		"": true, "A;": true, "A; ": true, "A; B": false,
		".mode": true, "A;\n.mode csv": true, "A ';": false, "A\n--;": false, "-- A": true} {
		if complete(text) != want {
			t.Errorf("complete(%q) is not %v", text, want)
		}
	}
}

// TestCommentsOfItems holds that a comment after a statement is no item.
func TestCommentsOfItems(t *testing.T) {
	for _, src := range []string{"-- \"first\nNEIGHBORS 4 LIMIT 2; -- last",
		"NEIGHBORS 4 LIMIT 2;-- last", "--\n--\nNEIGHBORS --\n4 --x\nLIMIT 2 --"} {
		item, rest, _ := nextItem(src)
		if next, _, _ := nextItem(rest); !strings.HasPrefix(item, "NEIGHBORS") || next != "" {
			t.Errorf("%q is %q, and goes on with %q", src, item, next)
		}
	}
}

// TestBareWords holds what needs no semicolon, and that a byte order mark is nothing.
func TestBareWords(t *testing.T) {
	for text, want := range map[string]string{"exit": ".quit", " QUIT ;": "QUIT ;",
		"quit;\nA": ".quit",
		"\\q\n":    ".quit", "help\r\n": ".help", "?": ".help",
		"HELP;": "HELP;", "helper": "helper",
		"\ufeffA;": "A;", "\ufeff\r\n.mode csv\r\n": ".mode csv",
		"A\nexit": "A\nexit"} {
		if item, _, _ := nextItem(text); item != want {
			t.Errorf("%q is %q, want %q", text, item, want)
		}
	}
	if !complete("exit") || !complete("help") || complete("exit now") {
		t.Error("Enter does not end a bare word, or ends more")
	}
	if d, err := findDot("exit"); err != nil || d.name != "quit" {
		t.Errorf(".exit is %v, %v", d, err)
	}
}

// TestClausesHaveHelp holds that every clause of a statement has a text.
func TestClausesHaveHelp(t *testing.T) {
	for _, st := range lang.Statements {
		for _, c := range st.Clauses {
			if clauseHelp(&st, c) == "" {
				t.Errorf("%s %s lacks a text in clauseTexts", st.Head, c.Word)
			}
		}
	}
}
