package value_test

import (
	"reflect"
	"testing"

	"gdb/shell/cypher/value"
)

// TestFrom holds what values of Go and of JSON become.
func TestFrom(t *testing.T) {
	want := value.Map{"n": int64(9007199254740993), "x": 1.5, "y": 100.0, "t": "é", "no": nil,
		"list": value.List{int64(1), true, value.Map{}}}
	got, err := value.FromJSON([]byte(`{"n": 9007199254740993, "x": 1.5, "y": 1e2, "t": "é",
		"no": null, "list": [1, true, {}]}`))
	if err != nil || !reflect.DeepEqual(got, any(want)) {
		t.Errorf("JSON: %#v, %v", got, err)
	}
	got, err = value.FromGo(map[string]any{"n": uint64(9007199254740993), "x": float32(1.5),
		"y": 100.0, "t": "é", "no": nil, "list": []any{uint8(1), true, map[string]int{}}})
	if err != nil || !reflect.DeepEqual(got, any(want)) {
		t.Errorf("Go: %#v, %v", got, err)
	}
	for _, text := range []string{"", "Ann", "1 2", "[1"} {
		if v, err := value.FromJSON([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
	for _, v := range []any{make(chan int), []any{struct{}{}}, uint64(1 << 63), map[int]int{1: 2}} {
		if got, err := value.FromGo(v); err == nil {
			t.Errorf("%T is %v", v, got)
		}
	}
}
