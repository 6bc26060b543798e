package superbatch

import (
	"testing"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestTimeWriting: the bytes are written, and nothing stays, with a full disk neither.
func TestTimeWriting(t *testing.T) {
	for _, full := range []bool{false, true} {
		mem, written := vfs.NewMem(), int64(0)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpFileWrite {
				return nil
			}
			if written += blockdev.WriteBytes; full && written > 4*blockdev.WriteBytes {
				return errorfs.ErrInjected
			}
			return nil
		}))
		took, err := TimeWriting(fs, "prep", "probe", 16<<20)
		if (err != nil) != full || took <= 0 && !full || written < 4<<20 {
			t.Errorf("full=%v: %v, %v, about %d bytes", full, took, err, written)
		}
		if left, err := mem.List("prep"); err != nil || len(left) != 0 {
			t.Errorf("full=%v: %v is left, %v", full, left, err)
		}
	}
}
