package shell

import (
	"slices"
	"unicode"
)

// buffer holds the text being edited, and a cursor between two runes of it.
type buffer struct {
	text   []rune
	cur    int
	killed []rune // the text that was cut last
}

func (b *buffer) String() string { return string(b.text) }

// set replaces the text and puts the cursor at its end.
func (b *buffer) set(s string) {
	b.text = []rune(s)
	b.cur = len(b.text)
}

// replace puts s in the place of the runes from start to the cursor.
func (b *buffer) replace(start int, s string) {
	in := []rune(s)
	b.text = slices.Concat(b.text[:start], in, b.text[b.cur:])
	b.cur = start + len(in)
}

func (b *buffer) insert(s string) { b.replace(b.cur, s) }

// cut removes the runes between two places and remembers them.
func (b *buffer) cut(from, to int) {
	if from == to {
		return
	}
	b.killed = append([]rune(nil), b.text[from:to]...)
	b.remove(from, to)
}

func (b *buffer) remove(from, to int) {
	b.text = slices.Delete(b.text, from, to)
	b.cur = from
}

// lineStart returns where the cursor's line begins.
func (b *buffer) lineStart() int {
	i := b.cur
	for i > 0 && b.text[i-1] != '\n' {
		i--
	}
	return i
}

// lineEnd returns where the cursor's line ends.
func (b *buffer) lineEnd() int {
	i := b.cur
	for i < len(b.text) && b.text[i] != '\n' {
		i++
	}
	return i
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// wordLeft returns where the word before the cursor begins.
func (b *buffer) wordLeft() int {
	i := b.cur
	for i > 0 && !isWordRune(b.text[i-1]) {
		i--
	}
	for i > 0 && isWordRune(b.text[i-1]) {
		i--
	}
	return i
}

// wordRight returns where the word after the cursor ends.
func (b *buffer) wordRight() int {
	i := b.cur
	for i < len(b.text) && !isWordRune(b.text[i]) {
		i++
	}
	for i < len(b.text) && isWordRune(b.text[i]) {
		i++
	}
	return i
}

// up moves the cursor to the line above, and reports whether there is one.
func (b *buffer) up() bool {
	start := b.lineStart()
	if start == 0 {
		return false
	}
	column := b.cur - start
	b.cur = start - 1
	b.cur = min(b.lineStart()+column, b.lineEnd())
	return true
}

// down moves the cursor to the line below, and reports whether there is one.
func (b *buffer) down() bool {
	end := b.lineEnd()
	if end == len(b.text) {
		return false
	}
	column := b.cur - b.lineStart()
	b.cur = end + 1
	b.cur = min(b.cur+column, b.lineEnd())
	return true
}

// edit does what an editing key asks, and reports whether k was such a key.
func (b *buffer) edit(k key) bool {
	switch k.code {
	case keyText, keyPaste:
		b.insert(k.text)
	case keyNewline:
		b.insert("\n")
	case keyLeft:
		b.cur = max(b.cur-1, 0)
	case keyRight:
		b.cur = min(b.cur+1, len(b.text))
	case keyWordLeft:
		b.cur = b.wordLeft()
	case keyWordRight:
		b.cur = b.wordRight()
	case keyLineStart:
		b.cur = b.lineStart()
	case keyLineEnd:
		b.cur = b.lineEnd()
	case keyBackspace:
		b.remove(max(b.cur-1, 0), b.cur)
	case keyDelete, keyEnd:
		b.remove(b.cur, min(b.cur+1, len(b.text)))
	case keyKillEnd:
		b.cut(b.cur, b.lineEnd())
	case keyKillStart:
		b.cut(b.lineStart(), b.cur)
	case keyKillWord:
		b.cut(b.wordLeft(), b.cur)
	case keyKillNextWord:
		b.cut(b.cur, b.wordRight())
	case keyYank:
		b.insert(string(b.killed))
	default:
		return false
	}
	return true
}
