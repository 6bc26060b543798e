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
		r, got := newPairReader(strings.NewReader(in), "p"), ""
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
