package codec

import (
	"bytes"
	"fmt"
	"io"
)

// shown is how many bytes of a field its line shows in hexadecimal.
const shown = 8

// lineBytes is the length of a line of plain hexadecimal.
const lineBytes = 16

// Dump annotates a byte slice from its start to its end.
type Dump struct {
	b     []byte
	off   int
	width int // digits of an offset
	out   bytes.Buffer
}

// NewDump returns a dump of b.
func NewDump(b []byte) *Dump {
	return &Dump{b: b, width: max(len(fmt.Sprint(len(b))), 3)}
}

// Off returns the offset of the next byte.
func (d *Dump) Off() int { return d.off }

// Remaining returns the number of bytes left.
func (d *Dump) Remaining() int { return len(d.b) - d.off }

// Field prints a line for the next n bytes: their range, the first of them in hexadecimal, and
// what they are. With fewer bytes left it takes those.
//
//	000-004: c2103f9a          crc32c 9a3f10c2 ok
func (d *Dump) Field(n int, format string, args ...any) {
	n = max(min(n, d.Remaining()), 0)
	raw := fmt.Sprintf("%x", d.b[d.off:d.off+min(n, shown)])
	if n > shown {
		raw = raw[:2*shown-2] + ".."
	}
	fmt.Fprintf(&d.out, "%0*d-%0*d: %-*s  %s\n", d.width, d.off, d.width, d.off+n, 2*shown, raw,
		fmt.Sprintf(format, args...))
	d.off += n
}

// Zeros prints a line for the next n bytes, which should be zeros, unless n is 0.
func (d *Dump) Zeros(n int) {
	n = max(min(n, d.Remaining()), 0)
	if n == 0 {
		return
	}
	what := fmt.Sprintf("%d zeros", n)
	if i := bytes.IndexFunc(d.b[d.off:d.off+n], func(r rune) bool { return r != 0 }); i >= 0 {
		what = fmt.Sprintf("NOT ZERO at %d", d.off+i)
	}
	d.Field(n, "%s", what)
}

// Note prints a line without bytes.
func (d *Dump) Note(format string, args ...any) {
	fmt.Fprintf(&d.out, "%*s  %s\n", 2*d.width+2, "", fmt.Sprintf(format, args...))
}

// Hex prints the next n bytes in hexadecimal and as text, 16 a line; lines that repeat the one
// before are one star.
//
//	000: 47 44 42 46 00 00 00 00  00 00 00 00 00 00 00 00  GDBF............
func (d *Dump) Hex(n int) {
	end := d.off + max(min(n, d.Remaining()), 0)
	var before []byte
	starred := false
	for d.off < end {
		line := d.b[d.off:min(d.off+lineBytes, end)]
		if bytes.Equal(line, before) {
			if !starred {
				d.out.WriteString("*\n")
			}
			starred = true
		} else {
			starred = false
			d.hexLine(line)
		}
		before = line
		d.off += len(line)
	}
}

func (d *Dump) hexLine(line []byte) {
	fmt.Fprintf(&d.out, "%0*d:", d.width, d.off)
	text := make([]byte, len(line))
	for i := range lineBytes {
		if i == lineBytes/2 {
			d.out.WriteByte(' ')
		}
		if i >= len(line) {
			d.out.WriteString("   ")
			continue
		}
		fmt.Fprintf(&d.out, " %02x", line[i])
		text[i] = '.'
		if c := line[i]; c >= ' ' && c <= '~' {
			text[i] = c
		}
	}
	fmt.Fprintf(&d.out, "  %s\n", text)
}

// WriteTo writes what was printed so far to w.
func (d *Dump) WriteTo(w io.Writer) (int64, error) { return d.out.WriteTo(w) }

// String returns what was printed so far.
func (d *Dump) String() string { return d.out.String() }
