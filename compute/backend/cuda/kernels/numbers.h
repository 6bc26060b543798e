// Functions of numbers, since there is no library on the device: within 1e-6 of the value, of the
// normal distribution within 4e-6. The same code runs on the device and in an emulator.
#pragma once
#include "prelude.h"

DEV float of_bits(u32 bits) {
	union {
		u32 u;
		float f;
	} x = {bits};
	return x.f;
}
DEV u32 bits_of(float f) {
	union {
		float f;
		u32 u;
	} x = {f};
	return x.u;
}

// exponential is e to the power of x: x is cut into a whole number n of logarithms of 2 and a rest
// of at most half of one, whose series ends at the seventh power. It is 0 below 2^-126.
DEV float exponential(float x) {
	if (!(x > -87.0f)) return x != x ? x : 0;
	if (x > 88.7f) return of_bits(0x7f800000); // infinity
	float scaled = x * 1.44269504f;
	int n = (int)(scaled + (scaled < 0 ? -0.5f : 0.5f));
	float r = (x - (float)n * 0.693359375f) - (float)n * -2.12194440e-4f;
	float p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1;
	p = p * r + 1;
	if (n > 127) { // 2^128 is no number
		p *= 2;
		n--;
	}
	return p * of_bits((u32)(n + 127) << 23);
}

// exponential_less_one is that less 1, for x that is not positive: its own series close to 0, where
// the difference would lose its digits.
DEV float exponential_less_one(float x) {
	if (x < -0.35f) return exponential(x) - 1;
	float p = 1.0f / 40320;
	p = p * x + 1.0f / 5040;
	p = p * x + 1.0f / 720;
	p = p * x + 1.0f / 120;
	p = p * x + 1.0f / 24;
	p = p * x + 1.0f / 6;
	p = p * x + 0.5f;
	p = p * x + 1;
	return p * x;
}

// logarithm_of_one_and is the natural logarithm of 1+x, for x from -0.3 to 1: twice the series of
// the inverse hyperbolic tangent of x/(2+x).
DEV float logarithm_of_one_and(float x) {
	float s = x / (2 + x), q = s * s;
	float p = 1.0f / 15;
	p = p * q + 1.0f / 13;
	p = p * q + 1.0f / 11;
	p = p * q + 1.0f / 9;
	p = p * q + 1.0f / 7;
	p = p * q + 1.0f / 5;
	p = p * q + 1.0f / 3;
	p = p * q + 1;
	return 2 * s * p;
}

// logarithm is that of a positive number: of its power of 2, and of what is left of it.
DEV float logarithm(float x) {
	u32 bits = bits_of(x);
	int n = (int)(bits >> 23) - 127;
	float m = of_bits((bits & 0x7fffff) | 0x3f800000);
	if (m > 1.41421356f) {
		m /= 2;
		n++;
	}
	return (float)n * 0.693147181f + logarithm_of_one_and(m - 1);
}

// normal_up_to is the share of the normal distribution up to x, half of the complementary error
// function of -x/√2, whose fit by Chebyshev polynomials is that of Press and others, "Numerical
// Recipes", section 6.2: within 1.2e-7 of the value, however small.
DEV float normal_up_to(float x) {
	float z = (x < 0 ? -x : x) * 0.707106781f;
	float t = 1 / (1 + 0.5f * z);
	float p = 0.17087277f;
	p = p * t - 0.82215223f;
	p = p * t + 1.48851587f;
	p = p * t - 1.13520398f;
	p = p * t + 0.27886807f;
	p = p * t - 0.18628806f;
	p = p * t + 0.09678418f;
	p = p * t + 0.37409196f;
	p = p * t + 1.00002368f;
	p = p * t - 1.26551223f;
	float tail = 0.5f * t * exponential(p - z * z);
	return x < 0 ? tail : 1 - tail;
}

// softened is e to the power of x, which is not positive, and 0 where that counts for nothing
// beside 1: as small a gradient slows products down where denormal numbers are slow.
DEV float softened(float x) { return x <= -64 ? 0 : exponential(x); }
