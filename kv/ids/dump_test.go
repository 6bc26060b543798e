package ids

import (
	"encoding/binary"
	"flag"
	"fmt"
	"testing"

	"gdb/internal/codec"
	"gdb/internal/expect"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var rewrite = flag.Bool("rewrite", false, "accept what is printed as the golden files")

// TestDumpIDs prints every block of a small dictionary behind the headers.
func TestDumpIDs(t *testing.T) {
	fs := vfs.NewMem()
	m, err := writeIDs(fs, "store", []string{"alice", "bob", "", "Zoë", "raw\xff"}, hashTest)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Files {
		text, b := "", readAll(t, fs, "store/"+f.Path)
		for n := uint64(1); n < uint64(len(b)/BlockBytes); n++ {
			block := b[n*BlockBytes : (n+1)*BlockBytes]
			d := codec.NewDump(block)
			if got := codec.BlockSum(f.Kind, m.UUID, n, block[4:]); got !=
				binary.LittleEndian.Uint32(block) {
				t.Errorf("%s block %d: wrong checksum", f.Path, n)
			}
			d.Field(4, "crc32c")
			DumpBlock(d, f.Kind, block)
			if d.Remaining() != 0 {
				t.Errorf("%s block %d: %d bytes were not printed", f.Path, n, d.Remaining())
			}
			text += fmt.Sprintf("block %d\n%s", n, d)
		}
		expect.Golden(t, f.Kind, text, *rewrite)
	}
}
