//go:build !amd64

package pq

// versions returns the versions of Scan that this processor has, by name.
func versions() map[string]scanFunc { return map[string]scanFunc{"plain": refScan} }
