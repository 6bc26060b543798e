package layout

import (
	"testing"

	"gdb/internal/codec"
	"gdb/kv"
)

// TestNumberedSum holds that the fast way to a block's checksum is codec.BlockSum.
func TestNumberedSum(t *testing.T) {
	uuid := kv.UUID{1, 2, 3}
	b := make([]byte, 4096)
	b[9], b[100] = 7, 8
	want := codec.BlockSum(KindTopologyOut, uuid, 7<<8, b[4:])
	if got := NumberedSum(SumSeed(KindTopologyOut, uuid), b[8:16], b[4:]); got != want {
		t.Errorf("sum is %08x, want %08x", got, want)
	}
}
