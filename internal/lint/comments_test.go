package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// riddles are turns of phrase whose nouns stand somewhere else, or nowhere: a reader has to guess
// what "that", "there" and "so many" stand for. A group of comments in which the words are right
// says so in a line "//lint:words REASON".
//
//lint:words it quotes them
var riddles = regexp.MustCompile(`\b(so many|is that of|are those of|is the one of|what is there|` +
	`they are there|of which there)\b`)

// checkWords finds riddles in the comments of a file, also where a line breaks within one.
func checkWords(t *testing.T, fset *token.FileSet, rel string, file *ast.File) {
	for _, g := range file.Comments {
		text := strings.Join(strings.Fields(g.Text()), " ")
		found := riddles.FindString(text)
		if found != "" && !strings.Contains(rawText(g), "//lint:words ") {
			t.Errorf("%s:%d: %q in a comment: begin with the name and a verb, name what is meant, "+
				"and say its unit, owner, or when it is valid", rel,
				fset.Position(g.Pos()).Line, found)
		}
	}
}

func TestRiddles(t *testing.T) {
	for text, want := range map[string]string{
		"rows is that of the table":                "is that of",
		"a block of so many threads":               "so many",
		"Rows returns the number of rows of the x": "",
	} {
		if got := riddles.FindString(text); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}
