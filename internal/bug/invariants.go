package bug

import "fmt"

// Check panics with "BUG: …" when ok is false and the binary was built with invariants. It is for
// mistakes of the program, never for bad input or failed I/O, which are errors.
func Check(ok bool, format string, args ...any) {
	if Checking && !ok {
		panic("BUG: " + fmt.Sprintf(format, args...))
	}
}

// Mangle fills a buffer that goes back to a pool with a pattern that is wrong as an id, a float
// and a length, so that a use after release is seen. It does nothing without invariants.
func Mangle(b []byte) {
	if !Checking {
		return
	}
	for i := range b {
		b[i] = 0xcd
	}
}
