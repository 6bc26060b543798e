//go:build !linux

package mem

// sharedFile makes a file of n bytes that has no name.
func sharedFile(n int64) (fd int, err error) { return unlinkedFile(n) }

// emptyShared writes zeros: a range of a file cannot be freed by the same call on all systems.
func emptyShared(b []byte) error {
	clear(b)
	return nil
}
