package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// noMessages are headings of docs/troubleshooting.md that no error says word for word.
var noMessages = map[string]string{
	"a file is damaged (exit code 3)": "many errors, each with its file and place",
	"`gdb` starts a debugger":         "what the other gdb does",
}

// TestTroubleshootingQuotes: each error that docs/troubleshooting.md explains is one that gdb has.
func TestTroubleshootingQuotes(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		source.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(source.String(), "")
	quoted := regexp.MustCompile(`(?m)^\*\*(.+?)[.?]?\*\*`).FindAllStringSubmatch(string(page), -1)
	if len(quoted) < 5 {
		t.Errorf("%d errors are explained", len(quoted))
	}
	for _, q := range quoted {
		for _, part := range strings.Split(q[1], " … ") {
			if !strings.Contains(text, part) && noMessages[q[1]] == "" {
				t.Errorf("no error says %q", part)
			}
		}
	}
}
