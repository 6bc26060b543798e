//go:build !amd64

package bf16

import "gdb/compute/kernel/amx"

func candidates() (all []*ops, noAMX error) { return []*ops{&plainOps}, amx.Available() }
