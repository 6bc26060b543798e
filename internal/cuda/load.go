//go:build cuda && cgo && linux

package cuda

/*
#cgo CFLAGS: -I${SRCDIR}/include -Wall
#cgo LDFLAGS: -L${SRCDIR}/lib -Wl,--as-needed -ldl
#include "forward.h"
*/
import "C"

import (
	"errors"
	"fmt"

	_ "gdb/internal/cuda/headers" // tells how to build where headers are missing
)

// Available returns why no device can be used, or nil. The first call loads the driver and cuBLAS;
// what it finds holds until the process ends.
func Available() error {
	n, err := Count()
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("cuda: no device: the driver is here and finds none")
	}
	if why := C.GoString(C.gdb_load_blas()); why != "" {
		return fmt.Errorf("cuda: %s", why)
	}
	return nil
}

// loadDriver loads the driver, once.
func loadDriver() error {
	if why := C.GoString(C.gdb_load_driver()); why != "" {
		return fmt.Errorf("cuda: %s", why)
	}
	return nil
}
