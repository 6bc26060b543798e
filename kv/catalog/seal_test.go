package catalog

import "testing"

// TestSealNames: a seal lists files of its own directory only, each once and in order.
func TestSealNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/a", "../a", `a\b`, `..\a`, "a\x00b",
		sealName, sealTemp, lockName} {
		s := seal{files: []sealedFile{{name: name}}}
		if _, err := decodeSeal(s.encode()); err == nil {
			t.Errorf("a seal lists %q", name)
		}
	}
	for _, names := range [][2]string{{"a", "a"}, {"b", "a"}} {
		s := seal{files: []sealedFile{{name: names[0]}, {name: names[1]}}}
		if _, err := decodeSeal(s.encode()); err == nil {
			t.Errorf("a seal lists %q", names)
		}
	}
	s := seal{files: []sealedFile{{name: "000004.sst"}, {name: "MANIFEST-000001"}}}
	if got, err := decodeSeal(s.encode()); err != nil || len(got.files) != 2 {
		t.Errorf("a sound seal: %v, %v", got, err)
	}
}
