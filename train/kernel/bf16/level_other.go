//go:build !amd64

package bf16

func choose() *ops { return &plainOps }

func levels() []*ops { return []*ops{&plainOps} }
