package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdb/internal/message"

	"github.com/jedib0t/go-pretty/v6/text"
)

// fakeTerminal types keys, and shows what is written on a grid of cells.
type fakeTerminal struct {
	keys     []string // what each Read returns
	cols     int
	lines    int
	rows     [][]rune
	row, col int
	raw      bool
	odd      string // what it does not know
}

func (f *fakeTerminal) Raw() (func() error, error) {
	f.raw = true
	return func() error { f.raw = false; return nil }, nil
}

func (f *fakeTerminal) Size() (int, int) { return f.cols, f.lines }

func (f *fakeTerminal) Read(p []byte, _ time.Duration) (int, error) {
	if len(f.keys) == 0 {
		return 0, errOutOfKeys
	}
	k := f.keys[0]
	f.keys = f.keys[1:]
	return copy(p, k), nil
}

var errOutOfKeys = errors.New("no more keys")

var sequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

// Write moves the cursor and sets cells, as terminals do: a cell written in the last column leaves
// the cursor there.
func (f *fakeTerminal) Write(p []byte) (int, error) {
	for s := string(p); s != ""; {
		if m := sequence.FindStringSubmatch(s); m != nil {
			f.control(m[1], m[2])
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch r {
		case '\r':
			f.col = 0
		case '\n':
			f.row++
		default:
			for len(f.rows) <= f.row {
				f.rows = append(f.rows, nil)
			}
			for len(f.rows[f.row]) <= f.col {
				f.rows[f.row] = append(f.rows[f.row], ' ')
			}
			f.rows[f.row][f.col] = r
			f.col += text.RuneWidth(r)
			if f.col > f.cols {
				f.odd = "wrote beyond the last column"
			}
		}
	}
	return len(p), nil
}

func (f *fakeTerminal) control(arg, what string) {
	n, err := strconv.Atoi(arg)
	if err != nil {
		n = 1
	}
	switch what {
	case "A":
		if f.row -= n; f.row < 0 {
			f.odd = "moved above the first row"
		}
	case "C":
		f.col += n
	case "J":
		f.rows = f.rows[:min(len(f.rows), f.row+1)]
		if f.row < len(f.rows) {
			f.rows[f.row] = f.rows[f.row][:min(len(f.rows[f.row]), f.col)]
		}
	case "m", "h", "l":
	default:
		f.odd = "unknown sequence " + arg + what
	}
}

func (f *fakeTerminal) String() string {
	var out []string
	for _, r := range f.rows {
		out = append(out, strings.TrimRight(string(r), " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// typed edits with a terminal that types keys, and returns what Read gives, and the screen.
func typed(e *ttyEditor, keys ...string) (string, *fakeTerminal, error) {
	f := &fakeTerminal{keys: keys, cols: 40, lines: 20}
	e.term = f
	if e.complete == nil {
		e.complete = func(string, int) (int, []candidate) { return 0, nil }
	}
	text, err := e.Read(context.Background(), "")
	return text, f, err
}

const (
	up, down, left, right = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"
	enter                 = "\r"
)

// TestEditing holds what keys do to the text.
func TestEditing(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"A;", enter}, "A;"},
		{[]string{"A", enter, "B;", enter}, "A\nB;"},
		{[]string{"AC;" + left + left + "B" + enter}, "ABC;"},
		{[]string{"AB;", "\x01", "x", "\x05", "y;", enter}, "xAB;y;"},
		{[]string{"AB C;", "\x17", "D;", enter}, "AB D;"},
		{[]string{"AB C", "\x15", "D;", "\x19", ";", enter}, "D;AB C;"},
		{[]string{"AB;", "\x7f\x7f", ";", enter}, "A;"},
		{[]string{"héé;", left, left, "\x7f", enter}, "hé;"},
		{[]string{"a b c;", "\x1bb", "\x1bb", "X", enter}, "a Xb c;"},
		{[]string{"ab;", "\x01", "\x04", enter}, "b;"},
		{[]string{"ab;", "\x01", right, "\x0b", ";", enter}, "a;"},
		{[]string{"ab;", "\x01", "\x1b[3~", enter}, "b;"},
		{[]string{".mode csv", enter}, ".mode csv"},
		{[]string{enter}, ""},
		{[]string{"'a;", enter, "';", enter}, "'a;\n';"},
		{[]string{"A\n", "-- ;", enter, ";", enter}, "A\n-- ;\n;"},
		{[]string{"AB", enter, "CD;", up, "x", down, enter}, "ABx\nCD;"},
		{[]string{"\x1b", "", "A;", enter}, "A;"},
		{[]string{"h\xc3", "\xa9;", enter}, "hé;"},
		{[]string{"\x1b[", "200~A;\rB;\rC", "\x1b[201~", ";", enter}, "A;\nB;\nC;"},
		{[]string{"\x1b[200~A;\r\x1b[201~", enter}, "A;\n"},
		{[]string{"\x1b\rA;", enter}, "\nA;"},
	} {
		got, f, err := typed(&ttyEditor{}, c.keys...)
		if got != c.want || err != nil || f.raw || f.odd != "" {
			t.Errorf("%q gives %q, %v, raw %v, %s; want %q", c.keys, got, err, f.raw, f.odd, c.want)
		}
	}
}

// TestEditEnds holds how input ends without an item.
func TestEditEnds(t *testing.T) {
	for keys, want := range map[string]error{"\x04": io.EOF, "AB\x03": errInterrupted,
		"AB": errOutOfKeys} {
		if _, f, err := typed(&ttyEditor{}, keys); !errors.Is(err, want) || f.raw {
			t.Errorf("%q: %v, want %v", keys, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := &ttyEditor{term: &fakeTerminal{keys: []string{"", "A;\r"}, cols: 40, lines: 20}}
	if _, err := e.Read(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a session that ended: %v", err)
	}
	e = &ttyEditor{term: &fakeTerminal{keys: []string{"!;\r"}, cols: 40, lines: 20}}
	if got, err := e.Read(t.Context(), "DRAFT"); got != "DRAFT!;" || err != nil {
		t.Errorf("a draft: %q, %v", got, err)
	}
}

// TestRecall holds that history gives whole inputs back, and what was typed before walking.
func TestRecall(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{up, enter}, "THIRD\n3;"},
		{[]string{up, up, up, enter}, "SECOND;"}, // the second Up goes to the first line
		{[]string{up, up, up, up, up, up, enter}, "FIRST;"},
		{[]string{"draft", up, down, ";", enter}, "draft;"},
		{[]string{"\x12", "s", enter}, "SECOND;"},
		{[]string{"\x12", "s", "\x12", enter}, "FIRST;"},
		{[]string{"\x12", "3", "\x05", " x;", enter}, "THIRD\n3; x;"},
		{[]string{"was", "\x12", "3", "\x07", ";", enter}, "was;"},
		{[]string{"\x12", "3x", "\x7f", enter}, "THIRD\n3;"},
		{[]string{"\x12", "zzz", "\x1b", "", "A;", enter}, "A;"},
	} {
		e := &ttyEditor{texts: []string{"FIRST;", "SECOND;", "THIRD\n3;"}}
		if got, f, err := typed(e, c.keys...); got != c.want || err != nil || f.odd != "" {
			t.Errorf("%q gives %q, %v, %s; want %q", c.keys, got, err, f.odd, c.want)
		}
	}
}

// TestMenu holds how Tab completes: the common prefix first, then a menu.
func TestMenu(t *testing.T) {
	words := []candidate{{word: "FANOUT", help: "numbers"},
		{word: "FANCY", help: "not"}, {word: "SEED", help: "of draws"}}
	complete := func(text string, cursor int) (int, []candidate) {
		start := strings.LastIndexByte(text[:cursor], ' ') + 1
		return start, matching(words, text[start:cursor])
	}
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"s\t1;", enter}, "SEED 1;"},
		{[]string{"f\t;", enter}, "FAN;"},
		{[]string{"f\t\t", enter, ";", enter}, "FANOUT;"},
		{[]string{"f\t\t\t 1;", enter}, "FANCY 1;"},
		{[]string{"f\t\x1b[Z;", enter}, "FANCY;"},
		{[]string{"f\t\t\x1b", "", ";", enter}, "FAN;"},
		{[]string{"x\t;", enter}, "x;"},
	} {
		got, f, err := typed(&ttyEditor{complete: complete}, c.keys...)
		if got != c.want || err != nil || f.odd != "" {
			t.Errorf("%q gives %q, %v, %s; want %q", c.keys, got, err, f.odd, c.want)
		}
	}
	f := &fakeTerminal{keys: []string{"f\t\t"}, cols: 40, lines: 20}
	e := &ttyEditor{term: f, complete: complete}
	e.buf.set("")
	e.screen.columns, e.screen.lines = 40, 20
	if err := e.loop(t.Context()); !errors.Is(err, errOutOfKeys) {
		t.Fatal(err)
	}
	if want := "gdb> FANOUT\n> FANOUT  numbers\n  FANCY   not"; f.String() != want {
		t.Errorf("the screen is\n%s\nwant\n%s", f, want)
	}
}

// TestScreen compares the screen after random keys with a plain drawing of the text.
func TestScreen(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	keys := []string{"a", "bc ", "日本", "é", "\x7f", left, right, up, down, "\x1b\r", "\x01", "\x05",
		"\x17", "\x1bb", "long words here ", "\t"}
	for range 300 {
		f := &fakeTerminal{cols: 8 + r.IntN(30), lines: 50}
		for range 40 {
			f.keys = append(f.keys, keys[r.IntN(len(keys))])
		}
		e := &ttyEditor{term: f, complete: func(string, int) (int, []candidate) { return 0, nil }}
		e.screen.columns, e.screen.lines = f.cols, f.lines
		if err := e.loop(t.Context()); !errors.Is(err, errOutOfKeys) {
			t.Fatal(err)
		}
		want, row, col := plainScreen(string(e.buf.text), e.buf.cur, f.cols)
		if f.String() != want || f.row != row || f.col != col || f.odd != "" {
			t.Fatalf("seed %d: %d columns, %q, cursor %d:\n%s\nat %d,%d; want\n%s\nat %d,%d; %s",
				seed, f.cols, string(e.buf.text), e.buf.cur, f, f.row, f.col, want, row, col, f.odd)
		}
	}
}

// plainScreen draws one rune after the other.
func plainScreen(s string, cur, cols int) (screen string, row, col int) {
	var b strings.Builder
	b.WriteString(promptFirst())
	x, y := len(promptFirst()), 0
	for i, r := range []rune(s + "\x00") {
		w := 1
		if r != 0 && r != '\n' {
			w = text.RuneWidth(r)
		}
		if (r == 0 || r != '\n') && x+w > cols {
			b.WriteByte('\n')
			x, y = 0, y+1
		}
		if i == cur {
			row, col = y, min(x, cols-1)
		}
		switch r {
		case 0:
		case '\n':
			b.WriteString("\n" + promptMore())
			x, y = len(promptMore()), y+1
		default:
			b.WriteRune(r)
			if w == 2 {
				b.WriteByte(0)
			}
			x += w
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.ReplaceAll(l, "\x00", " "), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n"), row, col
}

// TestTallText holds that text taller than the screen is drawn around the cursor.
func TestTallText(t *testing.T) {
	f := &fakeTerminal{cols: 40, lines: 6}
	for i := range 20 {
		f.keys = append(f.keys, fmt.Sprintf("line %d\x1b\r", i))
	}
	e := &ttyEditor{term: f}
	e.screen.columns, e.screen.lines = 40, 6
	if err := e.loop(t.Context()); !errors.Is(err, errOutOfKeys) {
		t.Fatal(err)
	}
	if got := f.String(); len(strings.Split(got, "\n")) > 6 || !strings.Contains(got, "line 19") ||
		f.odd != "" {
		t.Errorf("the screen is\n%s\n%s", got, f.odd)
	}
}

// TestPipedLines holds that statements of a pipe end where they end on a line or over many.
func TestPipedLines(t *testing.T) {
	text := "A;\n-- c;\nB\n 1,\n 'x\n;' ; C\n;\n.mode csv\n\nD"
	e := newPipeEditor(strings.NewReader(text), nil)
	var got []string
	for {
		text, err := e.Read(t.Context(), "")
		got = append(got, text)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"A;\n", "-- c;\n", "B\n 1,\n 'x\n;' ;", " C\n;\n", ".mode csv\n", "D"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("A;\r", 3)
	f.Add("\x1b[200~A\x1b[201~\x12x\r\t\x1b[Z", 7)
	f.Fuzz(func(t *testing.T, keys string, cut int) {
		cut = max(min(cut, len(keys)), 0)
		e := &ttyEditor{texts: []string{"OLD;"}, term: &fakeTerminal{cols: 20, lines: 5,
			keys: []string{keys[:cut], keys[cut:]}}, paint: highlighter(),
			complete: func(s string, cursor int) (int, []candidate) {
				return cursor, []candidate{{word: "ab"}, {word: "ac"}}
			}}
		text, err := e.Read(t.Context(), "")
		if err == nil && !complete(text) {
			t.Fatalf("%q was accepted", text)
		}
	})
}

// TestPromptNames: the prompt is the name that the program was called by; it is as wide where a
// statement goes on.
func TestPromptNames(t *testing.T) {
	defer func(name string) { message.Program = name }(message.Program)
	message.Program = "graphdb"
	if promptFirst() != "graphdb> " || promptMore() != ".......> " {
		t.Errorf("%q, %q", promptFirst(), promptMore())
	}
}
