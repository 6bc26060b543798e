package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// Terminal is a terminal as the line editor needs it.
type Terminal interface {
	io.Writer
	// Raw stops the terminal from editing and echoing until restore is called.
	Raw() (restore func() error, err error)
	// Read returns what was typed. It returns nothing, and no error, when nothing was typed for the
	// time wait.
	Read(p []byte, wait time.Duration) (int, error)
	// Size returns the size in characters.
	Size() (columns, lines int)
}

// History keeps what was typed, beyond the end of a session.
type History interface {
	// Load returns the texts, oldest first.
	Load() ([]string, error)
	// Add appends a text.
	Add(text string) error
}

// How long the editor waits: before it checks whether the session has ended or the terminal was
// resized, and for the rest of a key. An Escape that was pressed alone has no rest.
const (
	editWait   = 200 * time.Millisecond
	escapeWait = 40 * time.Millisecond
)

// ttyEditor edits items on a terminal, with several lines, history, search and completion.
type ttyEditor struct {
	term     Terminal
	history  History // nil for none
	complete func(text string, cursor int) (start int, found []candidate)
	paint    func(text string) []string // nil without color

	buf    buffer
	screen screen
	typed  []byte // what was read and not used yet
	texts  []string
	walk   int    // the index of the text of the history that is shown; len(texts) is the draft
	draft  string // what was typed before walking through the history
	menu   menu
	search search
}

// errAccepted ends the loop of Read when a whole item was accepted.
var errAccepted = errors.New("shell: accepted")

// Read edits one input.
func (e *ttyEditor) Read(ctx context.Context, draft string) (text string, err error) {
	restore, err := e.term.Raw()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.write("\x1b[?2004l"), restore()) }()
	e.buf.set(draft)
	e.walk, e.screen, e.menu, e.search = len(e.texts), screen{}, menu{}, search{}
	e.screen.columns, e.screen.lines = e.size()
	if err := e.write("\x1b[?2004h"); err != nil { // the terminal then marks what is pasted
		return "", err
	}
	err = e.loop(ctx)
	e.menu, e.search = menu{}, search{}
	e.buf.cur = len(e.buf.text)
	mark := ""
	if errors.Is(err, errInterrupted) {
		mark = "^C"
	}
	if err := errors.Join(e.redraw(), e.write(mark+"\r\n")); err != nil {
		return "", err
	}
	if errors.Is(err, errAccepted) {
		return e.buf.String(), nil
	}
	return "", err
}

func (e *ttyEditor) write(s string) error {
	_, err := io.WriteString(e.term, s)
	return err
}

func (e *ttyEditor) size() (columns, lines int) {
	columns, lines = e.term.Size()
	if columns < 8 || lines < 2 {
		return 80, 24 // for a terminal that does not know its size
	}
	return columns, lines
}

// loop handles keys until an item is accepted, and returns why it ended.
func (e *ttyEditor) loop(ctx context.Context) error {
	fresh := true
	for {
		k, n := nextKey(e.typed)
		if n > 0 {
			e.typed, fresh = e.typed[n:], true
			if err := e.handle(k); err != nil {
				return err
			}
			continue
		}
		if columns, lines := e.size(); columns != e.screen.columns || lines != e.screen.lines {
			e.screen.columns, e.screen.lines, fresh = columns, lines, true
		}
		if fresh {
			if err := e.redraw(); err != nil {
				return err
			}
			fresh = false
		}
		if err := e.fill(ctx); err != nil {
			return err
		}
	}
}

// fill reads what is typed next into typed.
func (e *ttyEditor) fill(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := editWait
	if len(e.typed) > 0 {
		wait = escapeWait
	}
	var b [4096]byte
	n, err := e.term.Read(b[:], wait)
	if err != nil {
		return err
	}
	if n == 0 && len(e.typed) == 1 && e.typed[0] == 0x1b {
		e.typed = nil
		return e.handle(key{code: keyEscape})
	}
	e.typed = append(e.typed, b[:n]...)
	return nil
}

// handle does what a key asks, in the search, in the menu or in the text.
func (e *ttyEditor) handle(k key) error {
	if e.search.on && e.searchKey(k) {
		return nil
	}
	if e.menu.on() && e.menuKey(k) {
		return nil
	}
	switch k.code {
	case keyEnter:
		return e.enter()
	case keyInterrupt:
		return errInterrupted
	case keyEnd:
		if len(e.buf.text) == 0 {
			return io.EOF
		}
	case keyTab:
		e.tab()
		return nil
	case keyUp:
		if !e.buf.up() {
			e.recall(e.walk - 1)
		}
		return nil
	case keyDown:
		if !e.buf.down() {
			e.recall(e.walk + 1)
		}
		return nil
	case keySearch:
		e.search = search{on: true, was: e.buf.String(), at: len(e.texts)}
		return nil
	case keyClear:
		e.screen.cursorRow = 0
		return e.write("\x1b[H\x1b[2J")
	}
	e.buf.edit(k)
	return nil
}

// enter accepts whole items. If the statement is not complete, it goes on in the next line.
func (e *ttyEditor) enter() error {
	if complete(e.buf.String()) {
		return errAccepted
	}
	e.buf.insert("\n")
	return nil
}

// recall shows a text of the history, or what was typed before.
func (e *ttyEditor) recall(at int) {
	if at < 0 || at > len(e.texts) {
		return
	}
	if e.walk == len(e.texts) {
		e.draft = e.buf.String()
	}
	e.walk = at
	if at == len(e.texts) {
		e.buf.set(e.draft)
		return
	}
	e.buf.set(e.texts[at])
}

// AddHistory adds a text to those that can be recalled, in this session and in later ones.
func (e *ttyEditor) AddHistory(text string) error {
	text = strings.TrimSpace(text)
	if len(e.texts) > 0 && e.texts[len(e.texts)-1] == text {
		return nil
	}
	e.texts = append(e.texts, text)
	if e.history == nil {
		return nil
	}
	return e.history.Add(text)
}

func (e *ttyEditor) redraw() error {
	v := view{first: promptFirst(), more: promptMore(), text: e.buf.text, cur: e.buf.cur}
	if e.search.on {
		v.first = e.search.prompt()
		v.more = v.first[:0]
	}
	if e.paint != nil {
		v.styles = e.paint(e.buf.String())
	}
	if e.menu.on() {
		v.below = e.menu.lines(e.screen.columns, e.screen.lines, e.paint != nil)
	}
	return e.write(e.screen.draw(v))
}

// search is an incremental search of the history.
type search struct {
	on     bool
	word   string
	was    string // the text before the search
	at     int    // the index of the text of the history that is shown
	failed bool
}

func (s *search) prompt() string {
	if s.failed {
		return "(no '" + s.word + "') "
	}
	return "(search '" + s.word + "') "
}

// searchKey handles a key during a search. Other keys end the search, and then edit what was found;
// searchKey returns false for those.
func (e *ttyEditor) searchKey(k key) (done bool) {
	s := &e.search
	from := s.at
	switch k.code {
	case keyText:
		s.word += k.text
		from++
	case keyBackspace:
		if r := []rune(s.word); len(r) > 0 {
			s.word, from = string(r[:len(r)-1]), len(e.texts)
		}
	case keySearch:
	case keyCancel, keyInterrupt:
		e.buf.set(s.was)
		e.search = search{}
		return true
	default:
		e.walk = min(s.at, len(e.texts))
		e.search = search{}
		return k.code == keyEscape
	}
	s.failed = true
	for i := min(from, len(e.texts)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(e.texts[i]), strings.ToLower(s.word)) {
			s.at, s.failed = i, false
			e.buf.set(e.texts[i])
			break
		}
	}
	return true
}
