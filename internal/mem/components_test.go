package mem

import "testing"

// TestDivide: parts have their least first, then their shares in their order, and no more than they
// can use; what they take besides comes out of what later parts are given.
func TestDivide(t *testing.T) {
	withTables := func(given int64) int64 { return given + given/10 }
	all := []Component{Fixed("program", "", 100),
		{Name: "lists", Least: 10, Most: 400, Share: 4, Takes: withTables},
		{Name: "rows", Most: 300, Share: All}, Fixed("step", "of a batch", 20)}
	for _, c := range []struct{ bytes, given, lists, rows, left int64 }{
		{131, 10, 11, 0, 0},         // the least of all
		{130, 10, 11, 0, -1},        // one byte less
		{231, 35, 38, 73, 0},        // a quarter of 100, with its tables, and the rest
		{1131, 260, 286, 300, 425},  // rows need no more
		{2131, 400, 440, 300, 1271}, // and lists neither
	} {
		p := Divide(c.bytes, all)
		lists, rows := p.Parts[1], p.Parts[2].Bytes
		if lists.Given != c.given || lists.Bytes != c.lists || rows != c.rows ||
			p.Left() != c.left || p.Taken() != c.bytes-c.left {
			t.Errorf("%d bytes: lists are given %d and take %d, rows %d, left %d; want %+v",
				c.bytes, lists.Given, lists.Bytes, rows, p.Left(), c)
		}
	}
	p := Divide(131, all)
	want := "program 100 B, lists 11 B, rows 0 B, step 20 B (of a batch), left 0 B"
	if p.String() != want {
		t.Errorf("%s; want %s", p.String(), want)
	}
}
