package cuda

import (
	"strings"
	"testing"

	"gdb/compute/backend"
)

func TestOpen(t *testing.T) {
	if _, err := OpenNamed("tpu", backend.Options{}); err == nil || !strings.Contains(err.Error(),
		"known are cpu and cuda") {
		t.Errorf("tpu: %v", err)
	}
	be, err := OpenNamed(backend.CPU, backend.Options{Workers: 1})
	if err != nil || be.About().Name != backend.CPU {
		t.Fatal(be, err)
	}
	if err := be.Close(); err != nil {
		t.Error(err)
	}
}

// TestChosen: names stand for themselves, and auto for one that opens.
func TestChosen(t *testing.T) {
	for _, name := range []string{backend.CPU, backend.CUDA} {
		if got := Chosen(name, 0); got != name {
			t.Errorf("%s is %s", name, got)
		}
	}
	be, err := OpenNamed(Chosen(backend.Auto, 0), backend.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := be.Close(); err != nil {
		t.Error(err)
	}
}
