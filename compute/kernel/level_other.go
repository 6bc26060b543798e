//go:build !amd64

package kernel

func supported() Level { return Plain }

func opsOf(Level) *ops { return &plainOps }
