package linkcmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestPairs holds what lines of pairs say, and where what is wrong was found.
func TestPairs(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"\n\n":                         "",
		"a,b\n":                        "[a  b]",
		"a,r,b\nc,,d":                  "[a r b][c  d]",
		"a\tr\tb \"c\"\n":              `[a r b "c"]`,
		"Head,tail\na,b\n":             "[a  b]",
		"\xef\xbb\xbfhead,tail\n\na,b": "[a  b]",
		"\"a":                          `p line 1: extraneous or missing " in quoted-field; a`,
		"a,b\nc":                       "[a  b]p line 2: want head, relation and tail, or",
		"a,b\n\n\"c,d":                 `[a  b]p line 3: extraneous or missing "`,
		"a,b,c,d":                      "p line 1: want head, relation and tail, or",
	} {
		r, got := newPairReader(strings.NewReader(in), "p", pairSource{typed: true}), ""
		line, err := r.next()
		for ; err == nil; line, err = r.next() {
			got += fmt.Sprint(line)
		}
		if !errors.Is(err, io.EOF) {
			got += strings.TrimPrefix(r.wrong(err).Error(), "predict: ")
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestPairsOfIngestedFiles reads what ingest read: by its header, its types and its other columns.
func TestPairsOfIngestedFiles(t *testing.T) {
	typed, plain := pairSource{typed: true}, pairSource{}
	for _, c := range []struct {
		src      pairSource
		in, want string
	}{
		{typed, "src,dst,type,weight,time\na,b,knows,1.5,10\n", "[a knows b]"},
		{plain, "time,Source,Target,weight\n7,a,b,1.5\n", "[a  b]"},
		{plain, "a,b,1.5\nc,d,2\n", "[a  b][c  d]"},
		{plain, "# a comment\n# another\na\tb\nc\td\n", "[a  b][c  d]"},
		{plain, "src;dst\na;b\n", "[a  b]"},
		{pairSource{srcCol: "x", dstCol: "y", relCol: "z", typed: true},
			"y,z,x\nb,r,a\n", "[a r b]"},
		{typed, "src,dst,type\na,b\n", "fields, fewer than the header"},
	} {
		r, got := newPairReader(strings.NewReader(c.in), "p", c.src), ""
		line, err := r.next()
		for ; err == nil; line, err = r.next() {
			got += fmt.Sprint(line)
		}
		if !errors.Is(err, io.EOF) {
			got += err.Error()
		}
		if !strings.HasSuffix(c.want, "header") && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}
