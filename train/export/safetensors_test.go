package export

import (
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWrite holds a file against the bytes that the format asks for.
func TestWrite(t *testing.T) {
	fs := vfs.NewMem()
	err := writeTensors(fs, "w.safetensors", map[string]string{"format": "pt"}, []tensor{
		{Name: "b", Shape: []int{2}, Values: []float32{1, -2}},
		{Name: "a", Shape: []int{1, 1}, Values: []float32{0.5}}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("w.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"__metadata__":{"format":"pt"},` +
		`"a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},` +
		`"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	text += strings.Repeat(" ", (8-len(text)%8)%8)
	want := string([]byte{byte(len(text)), 0, 0, 0, 0, 0, 0, 0}) + text +
		"\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f"
	if string(got) != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

// TestTwice: arrays of one name are refused, and nothing is written.
func TestTwice(t *testing.T) {
	fs := vfs.NewMem()
	for _, name := range []string{"a", tensorMetadata} {
		err := writeTensors(fs, "w", nil, []tensor{{Name: "a", Shape: []int{0}}, {Name: name,
			Shape: []int{0}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := fs.List(""); err != nil || len(names) > 0 {
		t.Errorf("%v is there: %v", names, err)
	}
}
