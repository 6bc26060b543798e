package kv

import (
	"context"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// VerifyIDs checks every block of the dictionary files, and with full also that each external id
// of one file leads back in the other.
func VerifyIDs(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string, m *Meta,
	full bool) ([]Finding, error) {
	panic("BUG: kv: VerifyIDs is missing")
}
