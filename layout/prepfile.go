package layout

import (
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/files"
)

// WritePrep writes a file of the store's prep directory from its parts: either completely, or the
// file stays as it was. path is relative to the store.
func (s *Store) WritePrep(path string, parts ...[]byte) error {
	prep, path := s.Path("prep"), s.Path(path)
	if err := s.FS().MkdirAll(prep, 0o755); err != nil {
		return fmt.Errorf("layout: make %s: %w", prep, err)
	}
	f, err := files.CreateAtomic(s.FS(), path)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	w := blockdev.NewWriter(f)
	for _, p := range parts {
		if _, err = w.Write(p); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Finish()
	} else {
		w.Stop()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("layout: write %s: %w", path, err), f.Abort())
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return nil
}
