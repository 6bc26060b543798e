//go:build !invariants

package bug

// Checking says whether this binary checks invariants; set by the build tag "invariants".
const Checking = false
