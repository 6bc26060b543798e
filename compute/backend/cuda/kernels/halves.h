// Values of bfloat16, the upper half of a float32, beside those of float32: loads widen them, and
// stores round.
#pragma once
#include "threads.h"

struct Half {
	unsigned short bits;
};

DEV float bits_of(u32 bits) {
	float v;
	__builtin_memcpy(&v, &bits, 4);
	return v;
}

DEV float widened(Half h) { return bits_of((u32)h.bits << 16); }

// rounded is the nearest value, of two as near the even one, as compute/kernel/bf16 has it: a NaN
// stays one, and what is below 2^-126 is a zero of its sign.
DEV Half rounded(float v) {
	u32 bits;
	__builtin_memcpy(&bits, &v, 4);
	u32 exponent = bits & 0x7f800000;
	if ((bits & 0x7fffffff) > 0x7f800000) bits |= 0x400000;
	else if (exponent == 0) bits &= 0x80000000;
	else bits += 0x7fff + (bits >> 16 & 1);
	return {(unsigned short)(bits >> 16)};
}

// FourHalves are as many values at a multiple of 8 bytes.
struct alignas(8) FourHalves {
	Half a, b, c, d;
};

// EightHalves are eight at a multiple of 16 bytes.
struct alignas(16) EightHalves {
	FourHalves x, y;
};

// loaded reads one, four or eight values as V, of either kind, and stored writes them.
template <class V> struct Halves;
template <> struct Halves<float> {
	static MEMBER float load(const Half *x) { return widened(*x); }
	static MEMBER void store(Half *x, float v) { *x = rounded(v); }
};
DEV Four widened(FourHalves h) {
	return {widened(h.a), widened(h.b), widened(h.c), widened(h.d)};
}
DEV FourHalves rounded(Four v) {
	return {rounded(v.a), rounded(v.b), rounded(v.c), rounded(v.d)};
}
template <> struct Halves<Four> {
	static MEMBER Four load(const Half *x) { return widened(*(const FourHalves *)x); }
	static MEMBER void store(Half *x, Four v) { *(FourHalves *)x = rounded(v); }
};
template <> struct Halves<Eight> {
	static MEMBER Eight load(const Half *x) {
		EightHalves h = *(const EightHalves *)x;
		return {widened(h.x), widened(h.y)};
	}
	static MEMBER void store(Half *x, Eight v) {
		*(EightHalves *)x = {rounded(v.x), rounded(v.y)};
	}
};

template <class V> DEV V load(const Half *x) { return Halves<V>::load(x); }
template <class V> DEV void store(Half *x, V v) { Halves<V>::store(x, v); }

// Result is values of float32, or with narrow of bfloat16.
struct Result {
	void *out;
	i64 narrow;

	template <class V> MEMBER V load(i64 at) const {
		return narrow ? ::load<V>((const Half *)out + at) : ::load<V>((const float *)out + at);
	}
	template <class V> MEMBER void store(i64 at, V v) const {
		if (narrow) ::store((Half *)out + at, v);
		else ::store((float *)out + at, v);
	}
};
