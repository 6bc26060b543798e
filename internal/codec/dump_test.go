package codec

import (
	"strings"
	"testing"
)

func TestDump(t *testing.T) {
	b := make([]byte, 120)
	copy(b, "\xc2\x10\x3f\x9aGDBF")
	copy(b[100:], "some text, more than a line")
	d := NewDump(b)
	d.Field(4, "crc32c %08x ok", 0x9a3f10c2)
	d.Field(4, "magic %q", "GDBF")
	d.Note("a list follows")
	d.Field(12, "list")
	d.Zeros(0)
	d.Zeros(12)
	d.Hex(80)
	d.Zeros(5)
	d.Field(50, "the rest")
	want := `000-004: c2103f9a          crc32c 9a3f10c2 ok
004-008: 47444246          magic "GDBF"
          a list follows
008-020: 00000000000000..  list
020-032: 00000000000000..  12 zeros
032: 00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  ................
*
096: 00 00 00 00 73 6f 6d 65  20 74 65 78 74 2c 20 6d  ....some text, m
112-117: 6f72652074        NOT ZERO at 112
117-120: 68616e            the rest
`
	if got := d.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if d.Remaining() != 0 || d.Off() != 120 {
		t.Errorf("%d bytes are left", d.Remaining())
	}
	var out strings.Builder
	if _, err := d.WriteTo(&out); err != nil || out.String() != want {
		t.Errorf("written: %s, %v", out.String(), err)
	}
}

func TestShortLine(t *testing.T) {
	d := NewDump([]byte("abc"))
	d.Hex(100)
	want := "000: 61 62 63" + strings.Repeat(" ", 13*3+1) + "  abc\n"
	if got := d.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
