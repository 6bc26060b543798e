//go:build !amd64

package codec

// fastGroups is the best decoder of this CPU; nil is plain Go.
var fastGroups groupDecoder
