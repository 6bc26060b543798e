package stream

import "golang.org/x/sys/cpu"

// fast is set if this CPU has the instructions that the kernels use.
var fast = cpu.X86.HasAVX512F && cpu.X86.HasBMI2

// mark does what markPlain does.
func (f *filter) mark(src []uint32, marks *[marksMost / marksWord]uint16) {
	if !fast {
		f.markPlain(src, marks)
		return
	}
	watchAVX512(src[:min(len(src), marksMost)], &f.dst, &marks[0])
}
