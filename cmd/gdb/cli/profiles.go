package cli

import (
	"os"
	"path/filepath"
)

// ProfilesDir returns where what was measured of devices is kept for all stores: gdb of the user's
// directory for caches, "" if there is none.
func ProfilesDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "gdb")
}
