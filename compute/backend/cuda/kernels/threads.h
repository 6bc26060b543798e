// How kernels share their work among threads, and four values at a time.
#pragma once
#include "prelude.h"

// Threads is the threads of a block, and Warps its warps of 32.
enum { Threads = 256, Warps = Threads / 32 };

DEV i64 lane() { return thread_in_block() % 32; }
DEV i64 warp_in_block() { return thread_in_block() / 32; }

// EACH has the threads of a launch share the numbers below n. EACH_WARP has its warps share them:
// all lanes of a warp have the same. EACH_BLOCK has its blocks share them.
#define EACH(i, n)                                                                   \
	for (i64 i = block_number() * threads_of_block() + thread_in_block(); i < (n); \
		 i += blocks() * threads_of_block())
#define EACH_WARP(i, n)                                              \
	for (i64 i = block_number() * Warps + warp_in_block(); i < (n); \
		 i += blocks() * Warps)
#define EACH_BLOCK(i, n) for (i64 i = block_number(); i < (n); i += blocks())

// Four are four values that follow one another, at a multiple of 16 bytes.
struct alignas(16) Four {
	float a, b, c, d;
};

// Eight are eight, which take 16 bytes as bfloat16.
struct Eight {
	Four x, y;
};

// Wide says how many values one of type V has.
template <class V> struct Wide;
template <> struct Wide<float> {
	enum { values = 1 };
};
template <> struct Wide<Four> {
	enum { values = 4 };
};
template <> struct Wide<Eight> {
	enum { values = 8 };
};

DEV Four operator+(Four x, Four y) { return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
DEV Four operator*(Four x, Four y) { return {x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }
DEV Four operator*(Four x, float f) { return {x.a * f, x.b * f, x.c * f, x.d * f}; }
DEV Eight operator+(Eight x, Eight y) { return {x.x + y.x, x.y + y.y}; }
DEV Eight operator*(Eight x, Eight y) { return {x.x * y.x, x.y * y.y}; }
DEV Eight operator*(Eight x, float f) { return {x.x * f, x.y * f}; }

// load reads one, four or eight values, and store writes them.
template <class V> DEV V load(const float *x) { return *(const V *)x; }
template <class V> DEV void store(float *x, V v) { *(V *)x = v; }

// each applies f to the values of one or four, with their numbers.
template <class F> DEV float each(float v, F f) { return f(v, 0); }
template <class F> DEV Four each(Four v, F f) {
	return {f(v.a, 0), f(v.b, 1), f(v.c, 2), f(v.d, 3)};
}

template <class F> DEV Eight each(Eight v, F f) {
	return {each(v.x, f), each(v.y, [=](float x, int k) { return f(x, k + 4); })};
}

// each of two.
template <class F> DEV float each(float v, float w, F f) { return f(v, w); }
template <class F> DEV Four each(Four v, Four w, F f) {
	return {f(v.a, w.a), f(v.b, w.b), f(v.c, w.c), f(v.d, w.d)};
}

// in_fours calls f with the first of four values at a time, and with that of the values left over,
// where fours is not 0: then all matrices are at multiples of 16 bytes. Else with every value.
template <class F> DEV void in_fours(i64 n, i64 fours, F f) {
	i64 many = fours ? n / 4 : 0;
	EACH(i, many) f(i * 4, Four());
	EACH(i, n - many * 4) f(many * 4 + i, 0.0f);
}

DEV float sum_of(float v) { return v; }
DEV float sum_of(Four v) { return (v.a + v.b) + (v.c + v.d); }
DEV float sum_of(Eight v) { return sum_of(v.x) + sum_of(v.y); }

// by_pieces calls f with what is read of rows of X at once: wide values, 0 for one.
template <class X, class F> DEV void by_pieces(i64 wide, F f) {
	if constexpr (sizeof(X) == 2) {
		if (wide == Wide<Eight>::values) return f(Eight());
	}
	if (wide) f(Four());
	else f(0.0f);
}

DEV float larger(float x, float y) { return x > y ? x : y; }

// warp_sum and warp_max are of the values of a warp's lanes, the same bits in all of them.
DEV float warp_sum(float v) {
	for (int mask = 16; mask > 0; mask /= 2) v += exchange(v, mask);
	return v;
}
DEV float warp_max(float v) {
	for (int mask = 16; mask > 0; mask /= 2) v = larger(v, exchange(v, mask));
	return v;
}

// group_sum is warp_sum of each group of lanes, whose number is a power of two.
DEV float group_sum(float v, i64 lanes) {
	for (int mask = (int)lanes / 2; mask > 0; mask /= 2) v += exchange(v, mask);
	return v;
}

// block_sum is the sum of the values of a block's threads, in all of them: that of neighbors first,
// in an order that depends on nothing. at has room for a value of each thread.
template <class T> DEV T block_sum(T v, T *at) {
	i64 t = thread_in_block();
	at[t] = v;
	barrier();
	for (i64 half = Threads / 2; half > 0; half /= 2) {
		if (t < half) at[t] += at[t + half];
		barrier();
	}
	v = at[0];
	barrier();
	return v;
}

// block_max is the largest value.
DEV float block_max(float v, float *at) {
	i64 t = thread_in_block();
	at[t] = v;
	barrier();
	for (i64 half = Threads / 2; half > 0; half /= 2) {
		if (t < half) at[t] = larger(at[t], at[t + half]);
		barrier();
	}
	v = at[0];
	barrier();
	return v;
}
