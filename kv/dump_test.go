package kv

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"testing"

	"gdb/internal/binfmt"
	"gdb/internal/codec"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var rewrite = flag.Bool("rewrite", false, "accept what is printed as the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; if the format is meant to change, give it a new version and run "+
			"with -rewrite. Got:\n%s", path, text)
	}
}

// TestDumpIDs prints every block of a small dictionary behind the headers.
func TestDumpIDs(t *testing.T) {
	fs := vfs.NewMem()
	m, err := writeIDs(fs, "store", []string{"alice", "bob", "", "Zoë", "raw\xff"}, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		text, b := "", readAll(t, fs, "store/"+f.Path)
		for n := uint64(1); n < uint64(len(b)/IDBlockBytes); n++ {
			block := b[n*IDBlockBytes : (n+1)*IDBlockBytes]
			d := binfmt.New(block)
			if got := codec.BlockSum(f.Kind, m.UUID, n, block[4:]); got !=
				binary.LittleEndian.Uint32(block) {
				t.Errorf("%s block %d: wrong checksum", f.Path, n)
			}
			d.Field(4, "crc32c")
			DumpIDBlock(d, f.Kind, block)
			if d.Rest() != 0 {
				t.Errorf("%s block %d: %d bytes were not printed", f.Path, n, d.Rest())
			}
			text += fmt.Sprintf("block %d\n%s", n, d)
		}
		golden(t, f.Kind, text)
	}
}

// TestDumpSeal prints the bytes of a seal.
func TestDumpSeal(t *testing.T) {
	s := seal{uuid: UUID{0: 0xaa, 15: 0xbb}, generation: 7, files: []sealedFile{
		{"000004.sst", 1234, 0x01020304}, {"MANIFEST-000001", 99, 5}}}
	b := s.encode()
	d := binfmt.New(b)
	d.Hex(len(b))
	golden(t, "SEAL", d.String())
}
