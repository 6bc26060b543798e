// Which values are dropped: the function of compute/kernel's dropout.go, bit for bit.
#pragma once
#include "prelude.h"

// high_product is the upper half of a product of 128 bits.
DEV u64 high_product(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }

// mix folds a product of 128 bits.
DEV u64 mix(u64 a, u64 b) { return high_product(a, b) ^ a * b; }

// Dropped says which values are dropped, and scales the others.
struct Dropped {
	u64 key;
	u32 threshold; // of draws of 24 bits, below which a value is dropped
	float factor;

	// of is what becomes of a value at a position.
	MEMBER float of(float v, i64 position) const {
		u64 m = key ^ (u64)(position >> 20) * 0xa0761d6478bd642full ^ 0xe7037ed1a0b428dbull;
		u64 mixed = mix(m, 0x8ebc6af09c88c6e3ull);
		u32 x = (u32)(position & 0xfffff) * 0x9e3779b9u + (u32)mixed;
		x = (x ^ x >> 16) * 0x7feb352du;
		x = (x ^ x >> 15 ^ (u32)(mixed >> 32)) * 0x846ca68bu;
		x = (x ^ x >> 16) >> 8;
		return x < threshold ? 0 : v * factor;
	}
};
