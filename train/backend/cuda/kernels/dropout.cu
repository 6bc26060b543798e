// Dropout of a matrix; that of rows on their way into means is in segments.cu.
#include "dropout.h"
#include "threads.h"

// x, whose first value has the position first
KERNEL(dropout)(float *x, i64 n, i64 first, i64 key, i64 threshold, f64 factor) {
	Dropped dropped = {(u64)key, (u32)threshold, (float)factor};
	EACH(i, n) x[i] = dropped.of(x[i], first + i);
}
