package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/shell/lang"
	"gdb/shell/result"
	"gdb/shell/words"
)

// dotCommand is one entry of the list of session commands. A session command begins with a dot and
// changes the session or the display; a statement asks the store.
type dotCommand struct {
	name    string // without the dot
	args    string
	help    string
	choices []string // words that may follow, for completion
	run     func(s *session, ctx context.Context, arg string) error
}

var (
	onOff      = []string{"on", "off"}
	pagerModes = []string{"auto", "on", "off"}
)

// dots is the only list of session commands: running them, completion and .help read it.
var dots []dotCommand

func init() {
	dots = []dotCommand{
		{"help", "[WORD]", "this page; or about a word", nil, (*session).dotHelp},
		{"mode", "[MODE]", "how results look", result.Modes, (*session).dotMode},
		{"rows", "N", "rows that a box shows at most; 0 is all", nil, (*session).dotRows},
		{"timing", "on|off", "the line that says what a statement cost", onOff,
			(*session).dotTiming},
		{"last", "", "run the last statement again and show all its rows", nil,
			(*session).dotLast},
		{"once", "FILE", "the next result goes to a file: .csv, .jsonl, .md", nil,
			(*session).dotOnce},
		{"read", "FILE", "run the statements of a file", nil, (*session).dotRead},
		{"watch", "SECONDS STATEMENT", "run a statement again and again, until Ctrl-C", nil,
			(*session).dotWatch},
		{"pager", "auto|on|off", "a screen at a time; auto: where it is longer",
			pagerModes, (*session).dotPager},
		{"edit", "", "edit the last statement in $VISUAL or $EDITOR", nil, (*session).dotEdit},
		{"history", "[N]", "the last N inputs", nil, (*session).dotHistory},
		{"open", "STORE", "go on with another store", nil, (*session).dotOpen},
		{"bail", "on|off", "whether the first failure ends a script", onOff, (*session).dotBail},
		{"settings", "", "what is set", nil, (*session).dotSettings},
		{"quit", "", "end the session; so does Ctrl-D", nil, (*session).dotQuit},
	}
}

// dot runs one session command. It returns a *SyntaxError for a wrong one.
func (s *session) dot(ctx context.Context, line string) error {
	word, arg, _ := strings.Cut(strings.TrimPrefix(line, "."), " ")
	d, err := findDot(strings.TrimRight(word, ";"))
	if err == nil {
		err = d.run(s, ctx, unquoted(arg))
	}
	var wrong *dotUsage
	if !errors.As(err, &wrong) {
		return err
	}
	if d == nil {
		return &lang.SyntaxError{Src: line, Msg: wrong.msg}
	}
	pos := min(len(word)+2, len(line))
	return &lang.SyntaxError{Src: line, Pos: pos, Msg: "." + d.name + " " + wrong.msg}
}

// dotUsage is the error of a wrong word or argument of a session command.
type dotUsage struct{ msg string }

// Error returns the message.
func (e *dotUsage) Error() string { return e.msg }

func dotUsagef(format string, args ...any) error {
	return &dotUsage{fmt.Sprintf(format, args...)}
}

// findDot finds a command by its name, or by a prefix that no other command has.
func findDot(word string) (*dotCommand, error) {
	if word == "exit" { // as elsewhere
		word = "quit"
	}
	var found []string
	var at int
	for i := range dots {
		if dots[i].name == word {
			return &dots[i], nil
		}
		if strings.HasPrefix(dots[i].name, word) && word != "" {
			found = append(found, "."+dots[i].name)
			at = i
		}
	}
	switch len(found) {
	case 0:
		hint := words.Near("."+word, dotNames())
		if word == "tables" || word == "schema" {
			hint = "; DESCRIBE shows types, columns and splits"
		}
		return nil, dotUsagef("unknown command %s%s; .help lists them", words.Quoted("."+word),
			hint)
	case 1:
		return &dots[at], nil
	}
	return nil, dotUsagef("%q may be %s", "."+word, strings.Join(found, ", "))
}

func dotNames() (names []string) {
	for _, d := range dots {
		names = append(names, "."+d.name)
	}
	return names
}

// unquoted removes a semicolon at the end, and the quotes around a file name.
func unquoted(arg string) string {
	arg = strings.TrimSpace(strings.TrimRight(arg, ";"))
	if text, n := "", 0; strings.HasPrefix(arg, "'") {
		if text, n = lang.Unquote(arg); n == len(arg) {
			return text
		}
	}
	return arg
}

// choice returns an error if an argument is not one of among.
func choice(arg string, among []string) error {
	if slices.Contains(among, arg) {
		return nil
	}
	return dotUsagef("wants %s%s", strings.Join(among, ", "), words.Near(arg, among))
}
