//go:build !amd64

package bf16

import "runtime"

// processor returns the kind of the processor: others than amd64 have one level.
func processor() string { return runtime.GOARCH }
