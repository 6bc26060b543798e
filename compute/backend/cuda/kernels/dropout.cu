// Dropout of a matrix; that of rows on their way into means is in segments.cu.
#include "dropout.h"
#include "threads.h"

// x, whose first value has the position at[1], by the key at[0]
KERNEL(dropout)(float *x, i64 n, const u64 *at, i64 threshold, f64 factor) {
	Dropped dropped = {at[0], (u32)threshold, (float)factor};
	i64 first = (i64)at[1];
	EACH(i, n) x[i] = dropped.of(x[i], first + i);
}
