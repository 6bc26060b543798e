package sample

import (
	"slices"
	"testing"
)

func TestParseFanout(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{{"10", []int{10}}, {"15,10,5", []int{15, 10, 5}}, {" 3 , all", []int{3, All}},
		{"ALL", []int{All}}, {"2147483647", []int{1<<31 - 1}}, {"", nil}, {"0", nil}, {"-1", nil},
		{"3,", nil}, {"3.5", nil}, {"2147483648", nil}, {"ten", nil}} {
		got, err := ParseFanout(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func FuzzParseFanout(f *testing.F) {
	for _, s := range []string{"15,10,5", "all", "1,all,3", ",", "-1", "99999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fanout, err := ParseFanout(text)
		if err != nil {
			return
		}
		if err := (Config{Fanout: fanout}).Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		again, err := ParseFanout(FormatFanout(fanout))
		if err != nil || !slices.Equal(again, fanout) {
			t.Errorf("%q: %v, written and read: %v, %v", text, fanout, again, err)
		}
	})
}
