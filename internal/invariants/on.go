//go:build invariants

package invariants

// Enabled says whether this binary checks invariants; set by the build tag "invariants".
const Enabled = true
