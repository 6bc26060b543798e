//go:build !amd64

package codec

// The best kernels of this CPU; nil is plain Go.
var (
	fastGroups groupDecoder
	fastMax    func(groups int, values *uint32) uint32
)
