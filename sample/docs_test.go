package sample_test

import (
	"os"
	"strings"
	"testing"
)

// The example of the documentation is what the example prints, as its test checks.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../docs/sampling.md")
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, output, _ := strings.Cut(string(src), "// Output:\n")
	for line := range strings.Lines(output) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "// ")
		if ok && !strings.Contains(string(doc), line+"\n") {
			t.Errorf("docs/sampling.md lacks the line %q of ExampleSampler", line)
		}
	}
	if strings.Count(output, "// ") < 7 {
		t.Errorf("the example prints nothing: %q", output)
	}
}
