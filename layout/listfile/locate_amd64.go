package listfile

import "golang.org/x/sys/cpu"

// fast is set if this CPU has the instructions that the kernels use.
var fast = cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// locate does what Locate does, for the first of nodes.
func (l *locator) locate(nodes []uint32, at []uint64, blocks, seek []uint32) int {
	if !fast {
		return l.locatePlain(nodes, at, blocks, seek)
	}
	_ = nodes[len(at)-1]
	return locateBMI(&l.b[0], l.groupSize, uint64(l.unitBits), &l.Blocks[0], uint64(l.BlockShift),
		&l.Index[0], nodes, at, &blocks[0], &seek[0])
}
