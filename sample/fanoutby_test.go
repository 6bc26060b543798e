package sample

import (
	"reflect"
	"strings"
	"testing"

	"gdb/kv"
)

func TestFanoutBy(t *testing.T) {
	m := &kv.Meta{Format: kv.TypedVersion, EdgeTypes: []string{"buys", "rev_buys", "sees"}}
	for text, want := range map[string][][]int{
		"10,all":                    nil,
		"10;5":                      {{10, 10, 10}, {5, 5, 5}},
		"buys=10,rev_buys=3;5":      {{10, 3, 0}, {5, 5, 5}},
		"sees=all,2 ; buys=0,1":     {{2, 2, All}, {0, 1, 1}},
		"rev_buys=7,sees=0;sees=20": {{0, 7, 0}, {0, 0, 20}},
	} {
		fanout, by, err := ParseFanoutBy(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := RelationFanouts(by, m)
		if err != nil || !reflect.DeepEqual(got, want) || len(fanout) != 2 {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
		again, same, err := ParseFanoutBy(FormatFanoutBy(fanout, by))
		if err != nil || !reflect.DeepEqual(again, fanout) || !reflect.DeepEqual(same, by) {
			t.Errorf("%s is written as %s", text, FormatFanoutBy(fanout, by))
		}
	}
	for _, bad := range []string{"buys=", "buys=-1;2", "=5", "buys=1,buys=2", "1,2;3", "0;5",
		"x;y"} {
		if _, _, err := ParseFanoutBy(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	_, err := RelationFanouts([]RelationFanout{{"bys": 5}}, m)
	if err == nil || !strings.Contains(err.Error(), "did you mean buys?") {
		t.Error(err)
	}
	if _, err := RelationFanouts([]RelationFanout{{"": 5}}, &kv.Meta{}); err == nil {
		t.Error("fanouts by relation of a store without relations")
	}
}
