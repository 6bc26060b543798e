//go:build !linux

package mem

// adviseHuge does nothing: this system has no such advice.
func adviseHuge([]byte) {}
