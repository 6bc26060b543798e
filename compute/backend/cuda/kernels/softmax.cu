// The softmax of the entries of each list, head by head.
#include "lists.h"
#include "numbers.h"

// softmax_of works on the entries of a list that first and step say, and on all of them if these
// are 0 and 1: most and sum combine what several threads found.
template <class Most, class Sum>
DEV void softmax_of(float *a, u32 begin, u32 end, i64 heads, i64 h, i64 first, i64 step, Most most,
					Sum sum) {
	float largest = -__builtin_inff();
	for (i64 e = begin + first; e < end; e += step) largest = larger(a[e * heads + h], largest);
	largest = most(largest);
	float total = 0;
	for (i64 e = begin + first; e < end; e += step) {
		float v = softened(a[e * heads + h] - largest);
		a[e * heads + h] = v;
		total += v;
	}
	float factor = 1 / sum(total);
	for (i64 e = begin + first; e < end; e += step) a[e * heads + h] *= factor;
}

// a (entries,heads), in place
KERNEL(softmax)(float *a, const u32 *off, i64 lists, const u32 *longs, i64 heads) {
	EACH(t, lists *heads) {
		u32 begin = off[t / heads], end = off[t / heads + 1];
		if (end - begin > LongList) continue;
		auto same = [](float v) { return v; };
		softmax_of(a, begin, end, heads, t % heads, 0, 1, same, same);
	}
	SHARED float at[Threads];
	EACH_BLOCK(u, longs[0] * heads) {
		u32 i = longs[LongHeader + 2 * (u / heads)];
		if (longs[LongHeader + 2 * (u / heads) + 1] > 0) continue; // the first part does all
		softmax_of(
			a, off[i], off[i + 1], heads, u % heads, thread_in_block(), Threads,
			[=](float v) { return block_max(v, at); }, [=](float v) { return block_sum(v, at); });
	}
}

// softmax_grad_of is softmax_of for the gradient.
template <class Sum>
DEV void softmax_grad_of(float *da, const float *a, u32 begin, u32 end, i64 heads, i64 h, i64 first,
						 i64 step, Sum sum) {
	float total = 0;
	for (i64 e = begin + first; e < end; e += step) total += a[e * heads + h] * da[e * heads + h];
	total = sum(total);
	for (i64 e = begin + first; e < end; e += step)
		da[e * heads + h] = a[e * heads + h] * (da[e * heads + h] - total);
}

// da (entries,heads) becomes the gradient of the input, given the output a
KERNEL(softmax_grad)(float *da, const float *a, const u32 *off, i64 lists, const u32 *longs, i64 heads) {
	EACH(t, lists *heads) {
		u32 begin = off[t / heads], end = off[t / heads + 1];
		if (end - begin > LongList) continue;
		softmax_grad_of(da, a, begin, end, heads, t % heads, 0, 1, [](float v) { return v; });
	}
	SHARED float at[Threads];
	EACH_BLOCK(u, longs[0] * heads) {
		u32 i = longs[LongHeader + 2 * (u / heads)];
		if (longs[LongHeader + 2 * (u / heads) + 1] > 0) continue; // the first part does all
		softmax_grad_of(da, a, off[i], off[i + 1], heads, u % heads, thread_in_block(), Threads,
						[=](float v) { return block_sum(v, at); });
	}
}
