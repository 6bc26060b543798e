package bf16

import (
	"encoding/binary"
	"fmt"
)

// cpuid returns the registers that the instruction CPUID sets for a leaf.
func cpuid(leaf uint32) (a, b, c, d uint32)

// processor returns the vendor of the processor, and what it says of its family, model and
// stepping.
func processor() string {
	_, b, c, d := cpuid(0)
	var vendor []byte
	for _, part := range []uint32{b, d, c} {
		vendor = binary.LittleEndian.AppendUint32(vendor, part)
	}
	signature, _, _, _ := cpuid(1)
	return fmt.Sprintf("%s %x", vendor, signature)
}
