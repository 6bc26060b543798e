package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gdb/internal/message"

	"golang.org/x/sys/unix"
)

// writeOwnCSV writes a graph of two groups of people, in files as people have them: string ids, an
// index without a name, a column that is not used.
func writeOwnCSV(t *testing.T) {
	t.Helper()
	var edges, nodes strings.Builder
	edges.WriteString(",person,friend\n")
	nodes.WriteString("person,team,city,goals,games\n")
	const people = 200
	for i := range people {
		team, row := "red", 4*i
		if i%2 == 1 {
			team = "blue"
		}
		fmt.Fprintf(&nodes, "p%d,%s,x,%d,%d\n", i, team, i%2*3+i%3, 7+i%5)
		for k := range 4 {
			fmt.Fprintf(&edges, "%d,p%d,p%d\n", row+k, i, (i+2*(k*k+1))%people)
		}
	}
	for name, text := range map[string]string{"friends.csv": edges.String(),
		"people.csv": nodes.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// screen runs a command on a terminal of 80 columns and returns what it shows.
func screen(t *testing.T, code int, args ...string) string {
	t.Helper()
	c := talk(t, nil, args...)
	size := &unix.Winsize{Row: 24, Col: message.ScreenColumns}
	if err := unix.IoctlSetWinsize(int(c.ctl.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.ended:
	case <-time.After(2 * time.Minute):
		t.Fatalf("gdb %s does not end: %q", strings.Join(args, " "), c.seen.String())
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("gdb %s: exit code %d: %s", strings.Join(args, " "), got, c.seen.String())
	}
	for length := -1; ; time.Sleep(100 * time.Millisecond) { // for what the terminal still holds
		c.mu.Lock()
		now := c.seen.Len()
		c.mu.Unlock()
		if now == length {
			break
		}
		length = now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return controls.ReplaceAllString(c.seen.String(), "")
}

var lineEnds = regexp.MustCompile(`[\r\n]+`)

// TestScreensFit: on a terminal of 80 columns nothing that these commands show is wider.
func TestScreensFit(t *testing.T) {
	t.Chdir(t.TempDir())
	writeOwnCSV(t)
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"ingest --edges friends.csv --nodes people.csv --label-col team " +
			"--feature-cols goals,games --out my.gdb", 0, "0 % of edges have their reverse"},
		{"info my.gdb", 0, "class     blue"},
		{"train my.gdb", 1, "gdb split my.gdb"},
		{"plan", 2, "plan takes 1 argument"},
		{"train my.gdb --optimizer gradient-descent-with-much-momentum", 2, "adagrad"},
		{"split my.gdb --split random=50/25/25", 0, "train 100, val 50, test 50 nodes"},
		{"plan my.gdb --memory 150MiB --topology paged", 0, "GFLOP/s"},
		{"info my.gdb --io", 0, "queue depth"},
		{"shell my.gdb -f nope.gdbq", 2, "nope.gdbq"},
		{"shell nowhere", 1, "not a gdb store"},
		{"train my.gdb", 0, "predict my.gdb --run r0001"},
		{"train my.gdb --epochs 2", 0, "epoch 2  loss "},
		{"runs my.gdb", 0, "r0002"},
		{"runs my.gdb compare", 0, "patience"},
		{"runs my.gdb show r0001", 0, "fanout             10,10"},
		{"runs my.gdb show none", 2, "runs STORE lists"},
		{"eval my.gdb --metric roc", 2, "rmse, mae or r2"},
		{"report my.gdb --out r.pdf", 2, "want FILE.html"},
		{"eval my.gdb --split test@9", 1, "without @ it is the default"},
		{"ingest friends.csv --out my.gdb", 1, "choose another --out"},
		{"eval my.gdb", 0, "predicted"},
		{"info my.gdb", 0, "r0001"},
		{"predict my.gdb --out p.csv", 0, "predictions are in p.csv"},
		{"predict my.gdb --out p.csv", 1, "--force overwrites it"},
		{"runs my.gdb rm r0002", 0, ""},
		{"demo", 0, "Done in"},
	} {
		if c.line == "demo" && testing.Short() {
			continue
		}
		text := screen(t, c.code, strings.Fields(c.line)...)
		if !strings.Contains(text, c.want) {
			t.Errorf("gdb %s: no %q in it:\n%s", c.line, c.want, text)
		}
		for _, line := range lineEnds.Split(text, -1) {
			if n := len([]rune(strings.TrimRight(line, " "))); n > message.ScreenColumns {
				t.Errorf("gdb %s: %d columns: %s", c.line, n, line)
			}
		}
	}
}
