//go:build !amd64 && !arm64

package kernel

func supported() []Level { return []Level{Plain} }

func opsOf(Level) *ops { return &plainOps }
