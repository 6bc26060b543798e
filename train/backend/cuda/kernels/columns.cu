// Sums of columns: each thread adds up the rows of a slab in a column of it, and then the sums of
// the slabs of a column are added in order. The host chooses slabs by the number of rows alone.
#include "threads.h"

// sums (slabs,cols): of the rows slab*size to (slab+1)*size-1 of x
KERNEL(column_sums)(float *sums, const float *x, i64 rows, i64 cols, i64 size, i64 slabs) {
	EACH(t, slabs *cols) {
		i64 c = t % cols, first = t / cols * size;
		float sum = 0;
		for (i64 i = first; i < rows && i < first + size; i++) sum += x[i * cols + c];
		sums[t] = sum;
	}
}

// the same of (x-mean)², where mean is that of a column
KERNEL(column_squares)(float *sums, const float *x, const float *mean, i64 rows, i64 cols, i64 size,
	   i64 slabs) {
	EACH(t, slabs *cols) {
		i64 c = t % cols, first = t / cols * size;
		float sum = 0;
		for (i64 i = first; i < rows && i < first + size; i++) {
			float v = x[i * cols + c] - mean[c];
			sum += v * v;
		}
		sums[t] = sum;
	}
}

// the same of dy and, in scaled, of dy*(x-mean)*inverse: the gradients of a norm's beta and gamma.
// Row i has the mean of stats[i*perRow+c*perColumn], and its inverse is so much behind.
KERNEL(norm_grad_sums)(float *plain, float *scaled, const float *dy, const float *x,
	   const float *stats, i64 perRow, i64 perColumn, i64 behind, i64 rows, i64 cols, i64 size,
	   i64 slabs) {
	EACH(t, slabs *cols) {
		i64 c = t % cols, first = t / cols * size;
		float sum = 0, product = 0;
		for (i64 i = first; i < rows && i < first + size; i++) {
			const float *s = stats + i * perRow + c * perColumn;
			float g = dy[i * cols + c];
			sum += g;
			product += g * ((x[i * cols + c] - s[0]) * s[behind]);
		}
		plain[t] = sum;
		scaled[t] = product;
	}
}

// out[c] = the sum of sums[slab,c], times factor
KERNEL(slab_sums)(float *out, const float *sums, i64 cols, i64 slabs, f64 factor) {
	EACH(c, cols) {
		float sum = 0;
		for (i64 s = 0; s < slabs; s++) sum += sums[s * cols + c];
		out[c] = sum * (float)factor;
	}
}
