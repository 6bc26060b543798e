package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// conversation is a gdb on a terminal of its own.
type conversation struct {
	t     *testing.T
	cmd   *exec.Cmd
	ctl   *os.File // the other side of the terminal
	ended chan error

	mu   sync.Mutex
	seen bytes.Buffer // all that was written
	from int          // what expect has passed
}

// talk starts gdb on a new terminal.
func talk(t *testing.T, env []string, args ...string) *conversation {
	t.Helper()
	return talkInto(t, nil, nil, env, args...)
}

// talkInto starts gdb on a new terminal, with standard output or standard error in a file if that
// is not nil.
func talkInto(t *testing.T, out, notes *os.File, env []string, args ...string) *conversation {
	t.Helper()
	ctl, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { ctl.Close() })
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(unix.IoctlSetPointerInt(int(ctl.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ctl.Fd()), unix.TIOCGPTN)
	must(err)
	must(unix.IoctlSetWinsize(int(ctl.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(err)
	cmd := exec.Command("gdb", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if out != nil {
		cmd.Stdout = out
	}
	if notes != nil {
		cmd.Stderr = notes
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1", "XDG_STATE_HOME="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	must(cmd.Start())
	must(tty.Close())
	c := &conversation{t: t, cmd: cmd, ctl: ctl, ended: make(chan error, 1)}
	go c.listen()
	go func() { c.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return c
}

func (c *conversation) listen() {
	b := make([]byte, 4096)
	for {
		n, err := c.ctl.Read(b)
		if err != nil {
			return // the terminal is closed once gdb has ended
		}
		c.mu.Lock()
		c.seen.Write(b[:n])
		c.mu.Unlock()
	}
}

func (c *conversation) send(keys string) {
	c.t.Helper()
	if _, err := c.ctl.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// patience is how long a test waits for what must come: a loaded machine needs much of it, and a
// test that passes none.
const patience = time.Minute

var controls = regexp.MustCompile(`\x1b\[[?0-9;]*[A-Za-z]`)

// expect waits until what was written since the last expect matches, and returns it.
func (c *conversation) expect(pattern string) string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	var text string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		c.mu.Lock()
		raw := c.seen.String()[c.from:]
		c.mu.Unlock()
		text = strings.ReplaceAll(controls.ReplaceAllString(raw, ""), "\r", "")
		if re.MatchString(text) {
			c.from += len(raw)
			return text
		}
	}
	c.t.Fatalf("waited for %q, got %q", pattern, text[max(0, len(text)-2000):])
	return ""
}

// ends waits for the end and checks the exit code.
func (c *conversation) ends(code int) {
	c.t.Helper()
	select {
	case err := <-c.ended:
		got := 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		}
		if got != code {
			c.t.Errorf("exit code %d, want %d; %q", got, code, c.seen.String())
		}
	case <-time.After(patience):
		c.t.Fatalf("gdb does not end: %q", c.seen.String())
	}
}

// TestConversation types at a shell.
func TestConversation(t *testing.T) {
	store := coraStore(t)
	state := "XDG_STATE_HOME=" + t.TempDir()
	c := talk(t, []string{state}, "shell", store)
	c.expect(`gdb> $`)
	// A statement ends with its semicolon; the box, and the line that says what it cost.
	c.send("DEGREES\r")
	c.expect(`\.\.\.> $`)
	c.send("OF 42;\r")
	c.expect(`│ 42   │ in        │ 2      │[\s\S]*1 row, [0-9.]+ ms, \d+ blocks? \(\d+ cached\), ` +
		`.* read\ngdb> $`)
	// Up brings the whole statement back.
	c.send("\x1b[A")
	c.expect(`gdb> DEGREES\n\.\.\.> OF 42;`)
	c.send("\r")
	c.expect(`│ 42 [\s\S]*gdb> $`)
	// Ctrl-C clears the line; the shell goes on.
	c.send("DEGREES OF")
	c.expect(`DEGREES OF$`)
	c.send("\x03")
	c.expect(`\^C\ngdb> $`)
	// Tab: the only word, and a menu with descriptions.
	c.send("SAM\t")
	c.expect(`SAMPLE $`)
	c.send("42 \t")
	c.expect(`FANOUT +neighbors drawn per node`)
	c.send("\x07\x15")
	c.expect(`gdb> $`)
	c.send("LABELS SPLIT tr\tCOUNTS;\r")
	c.expect(`LABELS SPLIT train COUNTS;[\s\S]*│ 6     │ 20    │[\s\S]*gdb> $`)
	// A mistake is shown with its place.
	c.send("NEIGBORS 42;\r")
	c.expect(`did you mean NEIGHBORS\?\n  NEIGBORS 42;\n  \^\n[\s\S]*gdb> $`)
	// Ctrl-R finds what was typed before.
	c.send("\x12counts")
	c.expect(`\(search 'counts'\) LABELS SPLIT train COUNTS;`)
	c.send("\r")
	c.expect(`│ 6     │ 20    │[\s\S]*gdb> $`)
	c.send(" DEGREES OF 7;\r") // a leading space: not for the history
	c.expect(`│ 7 [\s\S]*gdb> $`)
	c.send(".mode jsonl\r.timing off\rDEGREES OF 42;\r")
	c.expect(`\{"node":"42","direction":"in","degree":2\}\ngdb> $`)
	c.send("\x04")
	c.ends(0)

	file := filepath.Join(strings.TrimPrefix(state, "XDG_STATE_HOME="), "gdb", "shell_history")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the history file: %v, %v", info, err)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), `"DEGREES\nOF 42;"`) ||
		strings.Contains(string(b), "OF 7") {
		t.Errorf("the history is %s, %v", b, err)
	}

	c = talk(t, []string{state}, "shell", store)
	c.expect(`gdb> $`)
	c.send("\x1b[A")
	c.expect(`DEGREES OF 42;`)
	c.send("\x03\x03\x03")
	c.ends(130)

	c = talk(t, []string{state}, "shell", store, "--no-history")
	c.expect(`gdb> $`)
	c.send("\x1b[A.quit\r")
	c.ends(0)
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, b) {
		t.Errorf("--no-history wrote %s, %v", after, err)
	}
}

// TestPaste holds that pasted text runs only once Enter is pressed, and never a part of it.
func TestPaste(t *testing.T) {
	c := talk(t, nil, "shell", coraStore(t), "--mode", "csv")
	c.expect(`gdb> $`)
	var lines strings.Builder
	for i := range 61 {
		fmt.Fprintf(&lines, "DEGREES OF\r\n  %d;\r\n", i)
	}
	c.send("\x1b[200~" + lines.String() + "DEGREES\x1b[201~")
	text := c.expect(`\.\.\.> DEGREES$`)
	if strings.Contains(text, "node,direction") {
		t.Errorf("a paste ran: %q", text)
	}
	c.send("\r OF 7;\r")
	text = c.expect(`\n7,in,1\n[\s\S]*gdb> $`)
	if n := strings.Count(text, "node,direction,degree"); n != 62 {
		t.Errorf("%d results, want 62", n)
	}
	c.send("\x04")
	c.ends(0)
}

// TestPlainTerminals holds that nothing is edited or colored where that cannot be.
func TestPlainTerminals(t *testing.T) {
	store := coraStore(t)
	c := talk(t, []string{"TERM=dumb", "NO_COLOR="}, "shell", store)
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\r")
	c.expect(`│ 42 [\s\S]*gdb> $`)
	c.send("\x04")
	c.ends(0)
	if strings.Contains(c.seen.String(), "\x1b") {
		t.Errorf("escape codes on a dumb terminal: %q", c.seen.String())
	}
	c = talk(t, []string{"NO_COLOR="}, "shell", store, "--color", "never")
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\r")
	c.expect(`│ 42 [\s\S]*gdb> $`)
	if strings.Contains(c.seen.String(), "m") && regexp.MustCompile(`\x1b\[[0-9;]*m`).Match(
		c.seen.Bytes()) {
		t.Errorf("colors with --color never: %q", c.seen.String())
	}
	c.send("\x04")
	c.ends(0)
	c = talk(t, []string{"NO_COLOR="}, "shell", store)
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\r")
	c.expect(`│ 42 [\s\S]*gdb> $`)
	if !strings.Contains(c.seen.String(), "\x1b[1mnode") {
		t.Errorf("no color: %q", c.seen.String())
	}
	c.send("\x04")
	c.ends(0)
	c = talk(t, []string{"NO_COLOR=1"}, "shell", store)
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\rNEIGBORS;\r")
	c.expect(`did you mean[\s\S]*gdb> $`)
	if regexp.MustCompile(`\x1b\[[1-9][0-9;]*m`).Match(c.seen.Bytes()) {
		t.Errorf("colors with NO_COLOR: %q", c.seen.String())
	}
	c.send("\x04")
	c.ends(0)
}

// TestPager holds that a long result goes to the pager, and that .pager off keeps it here.
func TestPager(t *testing.T) {
	c := talk(t, []string{"GDB_PAGER=sed s/^/paged:/"}, "shell", coraStore(t), "--mode", "csv")
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\r")
	if text := c.expect(`42,in,2[\s\S]*gdb> $`); strings.Contains(text, "paged:") {
		t.Errorf("one line went to the pager: %q", text)
	}
	c.send("DEGREES OF RANDOM 100;\r")
	c.expect(`paged:node,direction,degree[\s\S]*gdb> $`)
	c.send(".pager off\rDEGREES OF RANDOM 100;\r")
	if text := c.expect(`100 rows, [\s\S]*gdb> $`); strings.Contains(text, "paged:") {
		t.Errorf("it went to the pager: %q", text)
	}
	c.send("\x04")
	c.ends(0)
}

// TestEditor holds that .edit brings back what the program leaves.
func TestEditor(t *testing.T) {
	c := talk(t, []string{"VISUAL=sed -i s/42/7/"}, "shell", coraStore(t), "--mode", "csv")
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\r")
	c.expect(`42,in,2[\s\S]*gdb> $`)
	c.send(".edit\r")
	c.expect(`DEGREES OF 7;$`)
	c.send("\r")
	c.expect(`7,in,1[\s\S]*gdb> $`)
	c.send("\x04")
	c.ends(0)
}

// TestInterruptStatement holds that Ctrl-C ends the statement and not the shell.
func TestInterruptStatement(t *testing.T) {
	c := talk(t, nil, "shell", coraStore(t), "--mode", "csv")
	c.expect(`gdb> $`)
	c.send(".pager off\rFEATURES RANDOM 2000;\r")
	c.expect(`node,f0`)
	c.send("\x03")
	c.expect(`cancelled after \d+\.\d s, [\d,]+ blocks read\ngdb> $`)
	c.send(".watch 0.01 DEGREES OF 42;\r")
	c.expect(`(42,in,2[\s\S]*){3}`)
	c.send("\x03")
	c.expect(`gdb> $`)
	c.send("DEGREES OF 7;\r")
	c.expect(`7,in,1[\s\S]*gdb> $`)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ends(130)
}

// TestStreams holds that each stream is looked at by itself: with results in a file, prompts and
// the cost are still on the terminal, and the file has nothing but data.
func TestStreams(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	store := coraStore(t)
	c := talkInto(t, out, nil, nil, "shell", store)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	c.expect(`gdb> $`)
	c.send("DEGREES OF 42;\n")
	c.expect(`1 row, [\s\S]*gdb> $`)
	c.send("\x04")
	c.ends(0)
	b, err := os.ReadFile(out.Name())
	if err != nil || string(b) != "node,direction,degree\n42,in,2\n" {
		t.Errorf("standard output is %q, %v", b, err)
	}
	if strings.Contains(c.seen.String(), "\x1b[?2004h") {
		t.Errorf("the line is edited, though standard output is no terminal: %q", c.seen.String())
	}
	notes, err := os.Create(filepath.Join(t.TempDir(), "notes"))
	if err != nil {
		t.Fatal(err)
	}
	c = talkInto(t, nil, notes, nil, "shell", store)
	if err := notes.Close(); err != nil {
		t.Fatal(err)
	}
	c.send("DEGREES OF 42;\nNEIGBORS 42;\n")
	c.expect(`│ 42   │ in        │ 2      │\n`)
	c.send("\x04")
	c.ends(0)
	b, err = os.ReadFile(notes.Name())
	if err != nil || !strings.HasPrefix(string(b), "syntax error at column 1: ") ||
		strings.Contains(c.seen.String(), "gdb> ") {
		t.Errorf("standard error is %q, %v; the terminal shows %q", b, err, c.seen.String())
	}
}

// TestInterruptScript holds that SIGINT ends a statement of -c wherever it is: while it reads, and
// while it writes where nobody reads.
func TestInterruptScript(t *testing.T) {
	store := coraStore(t)
	for _, stmt := range []string{"PATH 42 TO 1358; FEATURES SPLIT train; FEATURES RANDOM 2700",
		"MATCH (a IN SPLIT test)-[*1..4]-(b)-[*1..4]-(c)-[*1..4]-(d) RETURN count(*)"} {
		read, write, err := os.Pipe() // which nobody reads
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("gdb", "shell", store, "-c", stmt)
		var notes bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &notes
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntilBusy(t, cmd.Process.Pid, read)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		killer.Stop()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("%s: %v, want exit code 130; %s", stmt, err, notes.String())
		}
		if err := errors.Join(read.Close(), write.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// waitUntilBusy waits until a process runs its statement for good: it has written to a pipe as much
// as fits, or computed for a while, longer than it takes to start.
func waitUntilBusy(t *testing.T, pid int, pipe *os.File) {
	t.Helper()
	const page, ticks = 4096, 30 // ticks of 10 ms
	size, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		held, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		var user, system int // fields 14 and 15; what follows the name begins with the third
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
			t.Fatal(err)
		}
		if held > size-page || user+system >= ticks {
			return
		}
	}
	t.Fatal("the statement is not under way")
}
