package ids

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gdb/internal/expect"
)

const docsDir = "../../docs/format"

func TestDocConstants(t *testing.T) {
	expect.Constants(t, expect.Page(t, docsDir, "ids.md"), map[string]int{
		"BlockBytes": BlockBytes, "MaxBytes": MaxBytes, "forwardEntry": forwardEntry,
		"reverseEntry": reverseEntry, "flagCarried": flagCarried, "flagIndex": flagIndex})
}

// TestDocFields compares the tables of fields with the annotated dump of a block each.
func TestDocFields(t *testing.T) {
	page := expect.Page(t, docsDir, "ids.md")
	for _, c := range []struct{ heading, dump string }{
		{"## Data blocks of ids/forward.ids", dumpOf(t, ForwardKind, 1)},
		{"## Data blocks of ids/reverse.ids", dumpOf(t, ReverseKind, 1)},
		{"## Index blocks", dumpOf(t, ForwardKind, 2)},
		{"## Index blocks", dumpOf(t, ReverseKind, 2)},
		{"## Trailer", dumpOf(t, ForwardKind, 3)},
	} {
		const entries = 5 // of the block that is dumped
		expect.Fields(t, expect.Section(t, page, c.heading), c.dump, entries)
	}
}

// dumpOf returns a block of the golden dump of a dictionary file.
func dumpOf(t *testing.T, kind string, block int) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + kind)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut("\n"+string(b), fmt.Sprintf("\nblock %d\n", block))
	text, _, _ = strings.Cut(text, "block ")
	return text
}

// TestDocBlock compares the block printed in the page with the golden dump.
func TestDocBlock(t *testing.T) {
	text := expect.Section(t, expect.Page(t, docsDir, "ids.md"), "## A block")
	if dump := dumpOf(t, ReverseKind, 1); !strings.Contains(text, "```\n"+dump+"```") {
		t.Errorf("the block in ids.md is not\n%s", dump)
	}
}
