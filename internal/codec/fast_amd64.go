package codec

import "golang.org/x/sys/cpu"

// fastGroups is the best decoder of this CPU; nil is plain Go.
var fastGroups = chooseGroups()

func chooseGroups() groupDecoder {
	if cpu.X86.HasAVX {
		return decodeGroupsAVX
	}
	return nil
}
