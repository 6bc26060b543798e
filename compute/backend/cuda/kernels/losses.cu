// Losses and their gradients. What is counted and added up goes to parts, Kept numbers each, in
// double precision; finish adds these in order, whatever the number of blocks.
#include "losses.h"
#include "numbers.h"
#include "threads.h"

// PartSize is how many values make a part of a loss of single values: the host has the same number.
enum { PartSize = 4096 };

// out[k] = the sum of parts[p,k]
KERNEL(finish)(f64 *out, const f64 *parts, i64 count) {
	SHARED f64 at[Threads];
	EACH_BLOCK(k, Kept) {
		f64 sum = 0;
		for (i64 p = thread_in_block(); p < count; p += Threads) sum += parts[p * Kept + k];
		sum = block_sum(sum, at);
		if (thread_in_block() == 0) out[k] = sum;
	}
}

// each_part has the threads of a block share the values of a part, and puts the sums of what f adds
// to its Kept numbers there.
template <class F> DEV void each_part(f64 *parts, i64 n, F f) {
	SHARED f64 at[Threads];
	EACH_BLOCK(p, (n + PartSize - 1) / PartSize) {
		f64 own[Kept] = {0, 0, 0, 0};
		for (i64 i = p * PartSize + thread_in_block(); i < n && i < (p + 1) * PartSize;
			 i += Threads)
			f(i, own);
		for (int k = 0; k < Kept; k++) {
			f64 sum = block_sum(own[k], at);
			if (thread_in_block() == 0) parts[p * Kept + k] = sum;
		}
	}
}

// What is kept are the weights of the labels that are not negative, and how many these are. Without
// weights each has 1.
KERNEL(label_weights)(f64 *parts, const int *labels, const float *weights, i64 rows) {
	each_part(parts, rows, [=](i64 i, f64 *sum) {
		if (labels[i] < 0) return;
		sum[0] += weights ? weights[labels[i]] : 1;
		sum[1] += 1;
	});
}

// Cross-entropy of rows with a label that is not negative, each of the weight of its label;
// total[0] is the sum of these. parts has one for each row: its loss, and whether its label has the
// largest logit, the first of equal ones. grad may be logits.
KERNEL(cross_entropy)(float *grad, f64 *parts, const float *logits, const int *labels,
	   const float *weights, const f64 *total, i64 rows, i64 cols) {
	float share = 1 / (float)total[0];
	EACH_WARP(i, rows) {
		const float *row = logits + i * cols;
		float *to = grad + i * cols;
		i64 label = labels[i];
		f64 *part = parts + i * Kept;
		if (lane() == 0)
			for (int k = 0; k < Kept; k++) part[k] = 0;
		if (label < 0) {
			for (i64 c = lane(); c < cols; c += 32) to[c] = 0;
			continue;
		}
		float own = row[label], largest = -__builtin_inff(), sum = 0, beaten = 0;
		for (i64 c = lane(); c < cols; c += 32) {
			largest = larger(row[c], largest);
			if (row[c] > own || (row[c] == own && c < label)) beaten = 1;
		}
		largest = warp_max(largest);
		beaten = warp_max(beaten);
		float weight = weights ? weights[label] : 1.0f;
		for (i64 c = lane(); c < cols; c += 32) {
			float e = softened(row[c] - largest);
			to[c] = e;
			sum += e;
		}
		sum = warp_sum(sum);
		float factor = weight * share / sum;
		for (i64 c = lane(); c < cols; c += 32)
			to[c] = to[c] * factor - (c == label ? weight * share : 0);
		if (lane() == 0) {
			part[0] = (f64)weight * ((f64)logarithm(sum) - (f64)(own - largest));
			part[1] = beaten == 0;
		}
	}
}

// Binary cross-entropy of values and targets; a target of 1 counts as the weight of its column.
// What is kept beside the loss: how many are hit, wrong and missed. grad may be logits.
KERNEL(binary_cross_entropy)(float *grad, f64 *parts, const float *logits, const float *targets,
	   const float *positive, i64 n, i64 cols, f64 share) {
	each_part(parts, n, [=](i64 i, f64 *sum) {
		float x = logits[i], t = targets[i], weight = positive && t > 0 ? positive[i % cols] : 1.0f;
		float e = exponential(x < 0 ? x : -x);
		float probability = (x < 0 ? e : 1.0f) / (1 + e);
		sum[0] += (f64)weight * ((f64)(larger(x, 0) - x * t) + (f64)logarithm_of_one_and(e));
		sum[1] += x > 0 && t > 0;
		sum[2] += x > 0 && !(t > 0);
		sum[3] += !(x > 0) && t > 0;
		grad[i] = weight * (probability - t) * (float)share;
	});
}

// counted[0] of each part is how many targets are numbers.
KERNEL(count_targets)(f64 *parts, const float *targets, i64 n) {
	each_part(parts, n, [=](i64 i, f64 *sum) { sum[0] += targets[i] == targets[i]; });
}

// Errors of numbers, but for those whose target is NaN: kind 0 costs the square, 1 the size, 2 half
// the square up to 1 and the size less 1/2 beyond. What is kept beside the loss: the sums of
// squares and of sizes, and how many count, which counted has of all. grad may be outputs.
KERNEL(regression)(float *grad, f64 *parts, const float *outputs, const float *targets,
	   const f64 *counted, i64 n, i64 kind) {
	float share = 1 / (float)(counted[0] > 1 ? counted[0] : 1);
	each_part(parts, n, [=](i64 i, f64 *sum) {
		float t = targets[i];
		if (t != t) {
			grad[i] = 0;
			return;
		}
		float e = outputs[i] - t, sign = e > 0 ? 1 : e < 0 ? -1 : e;
		f64 size = e < 0 ? -(f64)e : (f64)e;
		bool squared = kind == 0 || (kind == 2 && size <= 1);
		sum[0] += kind == 0 ? size * size : kind == 1 ? size : squared ? size * size / 2 : size - 0.5;
		sum[1] += size * size;
		sum[2] += size;
		sum[3] += 1;
		grad[i] = (kind == 0 ? 2 * e : squared ? e : sign) * share;
	});
}

// Kept numbers of two kinds, what was kept and what was counted, go to the slot whose number
// slot[0] is.
KERNEL(keep_loss)(f64 *slots, const f64 *numbers, const i64 *slot) {
	EACH(k, 2 * Kept) slots[slot[0] * 2 * Kept + k] = numbers[k];
}
