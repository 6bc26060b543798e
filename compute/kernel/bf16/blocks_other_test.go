//go:build !amd64

package bf16

func tileLevel() *ops { return nil }
