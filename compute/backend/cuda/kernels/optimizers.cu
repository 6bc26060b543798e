// Steps of optimizers, and the bound of a gradient's norm.
#include "threads.h"

// One step of Adam, or of AdamW where shrink is not 1. What differs from step to step is in step:
// the factor of the deviation's root, shrink and the rate.
KERNEL(adam)(float *w, const float *g, float *m, float *v, i64 n, f64 l2, f64 beta1, f64 rest1,
	   f64 beta2, f64 rest2, f64 eps, const f64 *step) {
	f64 rootScale = step[0], shrink = step[1], rate = step[2];
	EACH(i, n) {
		float grad = g[i] + (float)l2 * w[i];
		float first = m[i] = (float)beta1 * m[i] + (float)rest1 * grad;
		float second = v[i] = (float)beta2 * v[i] + (float)rest2 * (grad * grad);
		float deviation = root(second) * (float)rootScale + (float)eps;
		w[i] = (float)shrink * w[i] - (float)rate * first / deviation;
	}
}

// w -= rate[0]*(g + decay*w)
KERNEL(sgd)(float *w, const float *g, i64 n, f64 decay, const f64 *rate) {
	EACH(i, n) w[i] -= (float)rate[0] * (g[i] + (float)decay * w[i]);
}

// s += g² and w -= rate[0]*g/(√s+eps), where decay*w is added to g first
KERNEL(adagrad)(float *w, const float *g, float *s, i64 n, f64 eps, f64 decay, const f64 *rate) {
	EACH(i, n) {
		float grad = g[i] + (float)decay * w[i];
		float sum = s[i] += grad * grad;
		w[i] -= (float)rate[0] * grad / (root(sum) + (float)eps);
	}
}

// NormSize is how many values a part of a norm has: the host has the same number.
enum { NormSize = 4096 };

// parts[p] = the sum of the squares of a part of g
KERNEL(square_parts)(f64 *parts, const float *g, i64 n) {
	SHARED f64 at[Threads];
	EACH_BLOCK(p, (n + NormSize - 1) / NormSize) {
		f64 sum = 0;
		for (i64 i = p * NormSize + thread_in_block(); i < n && i < (p + 1) * NormSize; i += Threads)
			sum += (f64)g[i] * (f64)g[i];
		sum = block_sum(sum, at);
		if (thread_in_block() == 0) parts[p] = sum;
	}
}

// factor[0] is that which bounds the norm of parts, and of the squares beside them, by most: 1 if
// it is not above that. One block.
KERNEL(clip_factor)(f64 *factor, const f64 *parts, i64 count, const f64 *beside, f64 most) {
	SHARED f64 at[Threads];
	f64 sum = 0;
	for (i64 p = thread_in_block(); p < count; p += Threads) sum += parts[p];
	f64 norm = root(block_sum(sum, at) + beside[0]);
	if (thread_in_block() == 0) factor[0] = norm > most ? (f64)(float)(most / norm) : 1;
}

// x *= factor[0]
KERNEL(scale_by)(float *x, i64 n, const f64 *factor) {
	float f = (float)factor[0];
	EACH(i, n) x[i] *= f;
}
