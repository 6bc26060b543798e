package ids

import (
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
)

// damagedBlock returns a DamageError about a block of a dictionary file.
func damagedBlock(path string, block uint64, format string, args ...any) *kv.DamageError {
	return &kv.DamageError{Finding: kv.Finding{Path: path, Block: int64(block),
		Offset: int64(block) * BlockBytes, What: fmt.Sprintf(format, args...)}}
}

// headerError converts an error of codec.DecodeHeader into an error about the file path.
func headerError(path string, err error) error {
	if errors.Is(err, codec.ErrVersion) {
		return fmt.Errorf("kv: %s: %w: %w", path, kv.ErrFormat, err)
	}
	return damagedBlock(path, 0, "%v", err)
}
