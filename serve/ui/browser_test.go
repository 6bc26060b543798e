package ui

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browsers are names of Chromium.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// dump returns a page as a browser has it after its script has run.
func dump(t *testing.T, program, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=2000", "--dump-dom", address).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", program, address, err)
	}
	return string(out)
}

// testBrowser opens pages in Chromium: hostile text does not act, and the script of the pages runs.
func testBrowser(t *testing.T, address string) {
	program := ""
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skipf("none of %s is here: the pages are not opened in a browser", browsers)
	}
	for _, c := range []struct{ path, title, want string }{
		{"/", "store", `href="/run/first"`},
		{"/run/first", "Run first of store", "<svg"},
		{statement("LABELS n2"), "Statement", "&lt;script&gt;document.title="},
		{"/node?id=%22%3E%3Cscript%3Edocument.title%3D%22taken%22%3C%2Fscript%3E%27", "Node " +
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(hostile), "Neighborhood of"},
	} {
		text := dump(t, program, address+c.path)
		title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindStringSubmatch(text)
		if title == nil || title[1] != c.title || !strings.Contains(text, c.want) {
			t.Errorf("%s: the title is %q, want %q; or no %q in\n%s", c.path, title, c.title,
				c.want, text)
		}
	}
	// The address names a column to sort by, as a click would.
	text := dump(t, program, address+statement("UNWIND [3, 10, 2] AS x RETURN x")+"#sort=0")
	cells := regexp.MustCompile(`<td>(\d+)</td>`).FindAllStringSubmatch(text, -1)
	if len(cells) != 3 || cells[0][1] != "2" || cells[1][1] != "3" || cells[2][1] != "10" {
		t.Errorf("sorted by the script, the rows are %v in\n%s", cells, text)
	}
}
