package codec

import "golang.org/x/sys/cpu"

// The best kernels for this CPU; nil stands for plain Go.
var (
	fastGroups = chooseGroups()
	fastMax    = chooseMax()
)

func chooseGroups() groupDecoder {
	if cpu.X86.HasAVX {
		return decodeGroupsAVX
	}
	return nil
}

func chooseMax() func(groups int, values *uint32) uint32 {
	if cpu.X86.HasAVX2 {
		return maxAVX2
	}
	return nil
}
