// Sums of columns, as a tree: each thread adds up the rows of a slab in a column of it, and then the
// sums of the slabs are rows, until one is left. Slabs are counted from the last row, so that zeros
// before the first row change nothing.
#include "halves.h"

// SlabRows is the rows of a slab, of which the first may have fewer: the host has the same number.
enum { SlabRows = 64 };

// Slab is the rows first to end-1 of rows that are in so many slabs.
struct Slab {
	i64 first, end;
};

DEV Slab slab_of(i64 number, i64 rows, i64 slabs) {
	i64 end = rows - (slabs - 1 - number) * SlabRows;
	return {end > SlabRows ? end - SlabRows : 0, end};
}

template <class X>
DEV void sum_slabs(float *sums, const X *x, i64 rows, i64 cols, i64 slabs, f64 factor) {
	EACH(t, slabs *cols) {
		Slab s = slab_of(t / cols, rows, slabs);
		i64 c = t % cols;
		float sum = 0;
		for (i64 i = s.first; i < s.end; i++) sum += load<float>(x + i * cols + c);
		sums[t] = sum * (float)factor;
	}
}

// sums (slabs,cols): of the rows of each slab of x, times factor
KERNEL(column_sums)(float *sums, const float *x, i64 rows, i64 cols, i64 slabs, f64 factor) {
	sum_slabs(sums, x, rows, cols, slabs, factor);
}

// the same of bfloat16
KERNEL(column_sums_half)(float *sums, const Half *x, i64 rows, i64 cols, i64 slabs, f64 factor) {
	sum_slabs(sums, x, rows, cols, slabs, factor);
}

// those of (x-mean)², where mean is that of a column
KERNEL(column_squares)(float *sums, const float *x, const float *mean, i64 rows, i64 cols,
	   i64 slabs) {
	EACH(t, slabs *cols) {
		Slab s = slab_of(t / cols, rows, slabs);
		i64 c = t % cols;
		float sum = 0;
		for (i64 i = s.first; i < s.end; i++) {
			float v = x[i * cols + c] - mean[c];
			sum += v * v;
		}
		sums[t] = sum;
	}
}

// the same of dy and, in scaled, of dy*(x-mean)*inverse: the gradients of a norm's beta and gamma.
// Row i has the mean of stats[i*perRow+c*perColumn], and its inverse is so much behind.
KERNEL(norm_grad_sums)(float *plain, float *scaled, const float *dy, const float *x,
	   const float *stats, i64 perRow, i64 perColumn, i64 behind, i64 rows, i64 cols, i64 slabs) {
	EACH(t, slabs *cols) {
		Slab s = slab_of(t / cols, rows, slabs);
		i64 c = t % cols;
		float sum = 0, product = 0;
		for (i64 i = s.first; i < s.end; i++) {
			const float *of = stats + i * perRow + c * perColumn;
			float g = dy[i * cols + c];
			sum += g;
			product += g * ((x[i * cols + c] - of[0]) * of[behind]);
		}
		plain[t] = sum;
		scaled[t] = product;
	}
}
