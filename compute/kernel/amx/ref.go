package amx

import "math"

// The functions of this file are the specification: readable first, fast never.

// Reference is Multiply in plain Go, with the same bits but for those of a NaN.
func Reference(b *Blocks) {
	b.check()
	for i := range Side * b.Rows {
		row := b.A[i/16*b.ATile+i%16*b.ARow:]
		for j := range Side * b.Cols {
			c := &b.C[i*b.CRow+j]
			sum := float32(0)
			if b.Accumulate {
				sum = *c
			}
			column := b.B[j/Side*b.Steps*StepWords+j%Side:]
			for s := range b.Steps {
				sum = addStep(sum, row[s*b.AStep:][:Side], column[s*StepWords:])
			}
			*c = sum
		}
	}
}

// addStep returns what the instruction TDPBF16PS does to a value of C, by its description in
// Intel's Software Developer's Manual, volume 2: it sums the products of the first values of pairs,
// and those of the second ones, adds the two sums, and then what it has to C. Each sum is rounded
// once to nearest even, and what is denormal, before or after, is a zero of its sign. The pairs of
// a column of B are Side words apart.
func addStep(c float32, row []uint16, column []uint32) float32 {
	first, second := float32(0), float32(0)
	for p := range Side / 2 {
		pair := column[p*Side]
		first = flushed(float64(first) + value(row[2*p])*value(uint16(pair)))
		second = flushed(float64(second) + value(row[2*p+1])*value(uint16(pair>>16)))
	}
	both := flushed(float64(first) + float64(second))
	return flushed(float64(flushed(float64(c))) + float64(both))
}

// value returns the value of a bfloat16, or zero if it is denormal. A product of two is exact in
// float64.
func value(n uint16) float64 {
	if n&0x7f80 == 0 {
		n &= 0x8000
	}
	return float64(math.Float32frombits(uint32(n) << 16))
}

// flushed rounds to float32, and what is denormal then to zero. A float64 does not have each sum of
// a float32 and a product, but is far from where float32 rounds if it does not.
func flushed(sum float64) float32 {
	const least = 0x1.ffffffp-127 // what is below rounds to a denormal
	if math.Abs(sum) < least {
		return float32(math.Copysign(0, sum))
	}
	return float32(sum)
}

// refTranspose is Transpose in plain Go.
func refTranspose(to, from []uint16, columns, fromRow, toTile int) {
	for j := range (columns + 15) / 16 * 16 {
		row := to[j/16*toTile+j%16*Side:][:Side]
		for i := range row {
			row[i] = 0
			if j < columns {
				row[i] = from[i*fromRow+j]
			}
		}
	}
}
