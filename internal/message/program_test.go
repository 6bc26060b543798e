package message

import "testing"

func TestPlain(t *testing.T) {
	for message, want := range map[string]string{
		"shell: DEGREES: kv: id \"9\": not found":  "shell: DEGREES: id \"9\": not found",
		"layout: kv: s.gdb: no store":              "s.gdb: no store",
		"blockdev: read a/layout: at kv: io: kv":   "read a/layout: at kv: io: kv",
		"":                                         "",
		"train: sample: fanout 0: give numbers: x": "train: fanout 0: give numbers: x",
	} {
		if got := Plain(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
