//go:build !linux

package mem

// adviseHuge does nothing: this system has no such advice.
func adviseHuge([]byte) {}

// populate does nothing: this system gives a page memory when it is written first.
func populate([]byte) bool { return false }
