package chart

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shapes are marks that differ where colors do not, around 0 0 with radius 1.
var shapes = []string{
	"", // a circle
	"M-.9 -.9H.9V.9H-.9Z",
	"M0 -1.15L1.1 .85H-1.1Z",
	"M0 -1.25L1.25 0L0 1.25L-1.25 0Z",
	"M0 1.15L1.1 -.85H-1.1Z",
	"M-.45 -1.2H.45V-.45H1.2V.45H.45V1.2H-.45V.45H-1.2V-.45H-.45Z",
	"M-1.3 -.5H1.3V.5H-1.3Z",
}

// marker draws the mark of a group: its color and its shape tell it from others.
func (d *drawing) marker(group int, x, y, radius float64) {
	shape := shapes[group%len(shapes)]
	if shape == "" {
		fmt.Fprintf(&d.b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>`, x, y, radius,
			Color(group))
		return
	}
	fmt.Fprintf(&d.b, `<path d="%s" transform="translate(%.1f %.1f) scale(%g)" fill="%s"/>`, shape,
		x, y, radius, Color(group))
}

// legendLines names groups beside their marks, in lines from left to right, and returns where they
// end.
func (d *drawing) legendLines(names []string, left, top, right float64) (bottom float64) {
	if len(names) == 0 {
		return top
	}
	x, y := left, top+ringsLine/2
	for k, name := range names {
		width := 24 + 7*float64(len([]rune(name))+1)
		if x+width > right && x > left {
			x, y = left, y+ringsLine
		}
		d.marker(k, x+7, y, 6)
		d.text(x+18, y+4, "start", name, "")
		x += width
	}
	return y + ringsLine
}

// entities replaces the characters that mean something in XML.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'",
	"&#39;")

// escaped returns text as it may stand in an element or an attribute. Characters that XML does not
// have become �.
func escaped(s string) string {
	return entities.Replace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r
	}, s))
}
