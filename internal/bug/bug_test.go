package bug

import (
	"strings"
	"testing"
)

func TestCatch(t *testing.T) {
	fails := func() (caught any) {
		defer func() { caught = recover() }()
		func() {
			defer Catch()
			panic("broken")
		}()
		return nil
	}
	if caught := fails(); caught != "broken" {
		t.Errorf("without a report the panic became %v", caught)
	}
	what, where := any(nil), ""
	OnPanic(func(w any, stack []byte) { what, where = w, string(stack) })
	defer handler.Store(nil)
	if caught := fails(); caught != nil {
		t.Errorf("with a report there was a panic still: %v", caught)
	}
	if what != "broken" || !strings.Contains(where, "TestCatch") {
		t.Errorf("reported %v at %s", what, where)
	}
	what = nil
	func() { defer Catch() }()
	if what != nil {
		t.Errorf("without a panic %v was reported", what)
	}
}
