//go:build !amd64

package codec

// There are no kernels for this CPU; nil stands for plain Go.
var (
	fastGroups groupDecoder
	fastMax    func(groups int, values *uint32) uint32
)
