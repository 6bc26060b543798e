//go:build !linux

package mem

// sharedFile fails.
func sharedFile(int64) (fd int, err error) { return -1, ErrNoSharing }

func emptyShared([]byte) error { return nil }
