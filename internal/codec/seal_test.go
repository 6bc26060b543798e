package codec

import (
	"bytes"
	"encoding/json"
	"testing"
)

// sealed returns an object with its checksum.
func sealed(t testing.TB, name string) []byte {
	t.Helper()
	b, err := json.MarshalIndent(struct {
		Name string `json:"name"`
		Sum  string `json:"crc32c"`
	}{name, SealZeros}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	SealJSON(b)
	return b
}

// TestSeal holds that any changed byte is found.
func TestSeal(t *testing.T) {
	good := sealed(t, "r0001")
	if err := CheckSealed(good); err != nil || bytes.Contains(good, []byte(SealZeros)) {
		t.Fatalf("%s: %v", good, err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if CheckSealed(bad) == nil {
			t.Errorf("byte %d changed: %q is taken", i, bad)
		}
		if CheckSealed(good[:i]) == nil {
			t.Errorf("the first %d bytes are taken", i)
		}
	}
}

func FuzzCheckSealed(f *testing.F) {
	f.Add([]byte(""))
	f.Add(sealed(f, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if CheckSealed(b) != nil {
			return
		}
		again := bytes.Clone(b)
		copy(again[len(again)-len(sealAfter)-len(SealZeros):], SealZeros)
		if SealJSON(again); !bytes.Equal(again, b) {
			t.Fatalf("%q is sealed, and not as SealJSON does", b)
		}
	})
}
