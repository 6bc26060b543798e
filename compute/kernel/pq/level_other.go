//go:build !amd64

package pq

// scanLevel returns the version of Scan for this processor.
func scanLevel() scanFunc { return refScan }
