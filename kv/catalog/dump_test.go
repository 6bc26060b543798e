package catalog

import (
	"flag"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"
	"gdb/kv"
)

var rewrite = flag.Bool("rewrite", false, "accept what is printed as the golden files")

// TestDumpSeal prints the bytes of a seal.
func TestDumpSeal(t *testing.T) {
	s := seal{uuid: kv.UUID{0: 0xaa, 15: 0xbb}, generation: 7, files: []sealedFile{
		{"000004.sst", 1234, 0x01020304}, {"MANIFEST-000001", 99, 5}}}
	b := s.encode()
	d := codec.NewDump(b)
	d.Hex(len(b))
	expect.Golden(t, "SEAL", d.String(), *rewrite)
}
