//go:build !amd64

package products

import "runtime"

// processor is the kind of the processor: others than amd64 have one level.
func processor() string { return runtime.GOARCH }
