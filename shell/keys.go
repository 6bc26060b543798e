package shell

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// keyCode says what a key does; keyText inserts text.
type keyCode uint8

const (
	keyText keyCode = iota
	keyPaste
	keyEnter
	keyNewline // a line break, wherever the statement ends
	keyTab
	keyBackTab
	keyEscape
	keyInterrupt
	keyEnd // Ctrl-D: the end of input
	keyUp
	keyDown
	keyLeft
	keyRight
	keyWordLeft
	keyWordRight
	keyLineStart
	keyLineEnd
	keyBackspace
	keyDelete
	keyKillEnd
	keyKillStart
	keyKillWord
	keyKillNextWord
	keyYank
	keySearch
	keyCancel
	keyClear
	keyNone
)

// key is one key that was pressed, or a run of text that was typed or pasted at once.
type key struct {
	code keyCode
	text string
}

var controlKeys = map[byte]keyCode{
	0x01: keyLineStart, 0x02: keyLeft, 0x03: keyInterrupt, 0x04: keyEnd, 0x05: keyLineEnd,
	0x06: keyRight, 0x07: keyCancel, 0x08: keyBackspace, 0x09: keyTab, 0x0a: keyEnter,
	0x0b: keyKillEnd, 0x0c: keyClear, 0x0d: keyEnter, 0x0e: keyDown, 0x10: keyUp,
	0x12: keySearch, 0x15: keyKillStart, 0x17: keyKillWord, 0x19: keyYank, 0x7f: keyBackspace,
}

// escapeKeys maps the sequences after the escape character to keys.
var escapeKeys = map[string]keyCode{
	"[A": keyUp, "[B": keyDown, "[C": keyRight, "[D": keyLeft, "[H": keyLineStart, "[F": keyLineEnd,
	"OA": keyUp, "OB": keyDown, "OC": keyRight, "OD": keyLeft, "OH": keyLineStart, "OF": keyLineEnd,
	"[1~": keyLineStart, "[7~": keyLineStart, "[4~": keyLineEnd, "[8~": keyLineEnd,
	"[3~": keyDelete, "[Z": keyBackTab, "[1;5C": keyWordRight, "[1;5D": keyWordLeft,
	"[1;3C": keyWordRight, "[1;3D": keyWordLeft, "b": keyWordLeft, "f": keyWordRight,
	"d": keyKillNextWord, "\x7f": keyKillWord, "\r": keyNewline, "\n": keyNewline,
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// nextKey decodes the first key of b and returns how many bytes it takes; 0 if more bytes must be
// read first.
func nextKey(b []byte) (key, int) {
	switch {
	case len(b) == 0:
		return key{}, 0
	case b[0] == 0x1b:
		return escapeKey(b)
	case b[0] < ' ' || b[0] == 0x7f:
		code, ok := controlKeys[b[0]]
		if !ok {
			code = keyNone
		}
		return key{code: code}, 1
	}
	n := 0
	for n < len(b) && b[n] >= ' ' && b[n] != 0x7f {
		if !utf8.FullRune(b[n:]) {
			break
		}
		_, size := utf8.DecodeRune(b[n:])
		n += size
	}
	return key{keyText, strings.ToValidUTF8(string(b[:n]), "\ufffd")}, n
}

func escapeKey(b []byte) (key, int) {
	if bytes.HasPrefix(b, []byte(pasteBegin)) {
		end := bytes.Index(b, []byte(pasteEnd))
		if end < 0 {
			return key{}, 0
		}
		return key{keyPaste, pasted(string(b[len(pasteBegin):end]))}, end + len(pasteEnd)
	}
	n := 1
	switch {
	case len(b) == 1:
		return key{}, 0
	case b[1] == '[' || b[1] == 'O':
		for n = 2; n < len(b) && b[n] < 0x40; n++ {
		}
		if n == len(b) {
			return key{}, 0
		}
		n++
	default:
		n = 2
	}
	code, ok := escapeKeys[string(b[1:n])]
	if !ok {
		code = keyNone
	}
	return key{code: code}, n
}

// pasted returns text as it was copied: terminals send line ends as carriage returns.
func pasted(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}
