//go:build !linux

package mem

// sharedFile returns ErrNoSharing.
func sharedFile(int64) (fd int, err error) { return -1, ErrNoSharing }

func emptyShared([]byte) error { return nil }
