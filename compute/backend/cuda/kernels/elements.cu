// Operations on single values.
#include "numbers.h"
#include "threads.h"

// dst += src
KERNEL(add)(float *dst, const float *src, i64 n, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		typedef decltype(kind) V;
		store(dst + i, load<V>(dst + i) + load<V>(src + i));
	});
}

// x *= factor
KERNEL(scale)(float *x, i64 n, f64 factor, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		store(x + i, load<decltype(kind)>(x + i) * (float)factor);
	});
}

// x += number
KERNEL(shift)(float *x, i64 n, f64 number) { EACH(i, n) x[i] += (float)number; }

// x[i,:] *= f[i]
KERNEL(row_scale)(float *x, const float *f, i64 rows, i64 cols) {
	EACH(i, rows *cols) x[i] *= f[i / cols];
}

// y[i,:] += bias, and then max(0, y) if relu. A NaN stays. fours: rows are multiples of four.
KERNEL(bias)(float *y, const float *bias, i64 rows, i64 cols, i64 relu, i64 fours) {
	in_fours(rows * cols, fours, [=](i64 i, auto kind) {
		typedef decltype(kind) V;
		V v = load<V>(y + i) + load<V>(bias + i % cols);
		store(y + i, each(v, [=](float x, int) { return relu && x < 0 ? 0.0f : x; }));
	});
}

// dx *= factor where y > 0, else 0
KERNEL(relu_grad)(float *dx, const float *y, i64 n, f64 factor, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		typedef decltype(kind) V;
		store(dx + i, each(load<V>(dx + i), load<V>(y + i),
						   [=](float g, float v) { return v > 0 ? g * (float)factor : 0.0f; }));
	});
}

// x = x > 0 ? x : slope*x
KERNEL(leaky_relu)(float *x, i64 n, f64 slope, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		store(x + i, each(load<decltype(kind)>(x + i),
						  [=](float v, int) { return v > 0 ? v : (float)slope * v; }));
	});
}

// dx *= slope where y is not positive
KERNEL(leaky_relu_grad)(float *dx, const float *y, i64 n, f64 slope, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		typedef decltype(kind) V;
		store(dx + i, each(load<V>(dx + i), load<V>(y + i),
						   [=](float g, float v) { return v > 0 ? g : g * (float)slope; }));
	});
}

// x = exp(x)-1 where it is not positive
KERNEL(elu)(float *x, i64 n) {
	EACH(i, n) {
		if (!(x[i] > 0)) x[i] = exponential_less_one(x[i]);
	}
}

// dx *= y+1 where y is not positive
KERNEL(elu_grad)(float *dx, const float *y, i64 n) {
	EACH(i, n) {
		if (!(y[i] > 0)) dx[i] *= y[i] + 1;
	}
}

// y = x times the share of the normal distribution up to x
KERNEL(gelu)(float *y, const float *x, i64 n) { EACH(i, n) y[i] = x[i] * normal_up_to(x[i]); }

// dx *= the derivative of that
KERNEL(gelu_grad)(float *dx, const float *x, i64 n) {
	EACH(i, n) {
		float v = x[i], density = exponential(-v * v / 2) * 0.398942280f;
		dx[i] *= normal_up_to(v) + v * density;
	}
}

// columns of x, from column from on, go to columns of y, from column to on: cols of each row. xs
// and ys are the widths of rows.
KERNEL(copy_columns)(float *y, const float *x, i64 rows, i64 cols, i64 ys, i64 to, i64 xs,
	   i64 from) {
	EACH(i, rows *cols) y[i / cols * ys + to + i % cols] = x[i / cols * xs + from + i % cols];
}

// out (rows,cols) is the mean of the heads of x (rows,heads*cols)
KERNEL(head_mean)(float *out, const float *x, i64 rows, i64 heads, i64 cols) {
	EACH(i, rows *cols) {
		const float *row = x + i / cols * heads * cols + i % cols;
		float sum = row[0];
		for (i64 h = 1; h < heads; h++) sum += row[h * cols];
		out[i] = sum * (1 / (float)heads);
	}
}

// dx (rows,heads*cols): each head gets its share of dout (rows,cols)
KERNEL(head_mean_grad)(float *dx, const float *dout, i64 rows, i64 heads, i64 cols) {
	EACH(i, rows *heads *cols) {
		dx[i] = dout[i / (heads * cols) * cols + i % cols] * (1 / (float)heads);
	}
}

// out[e,:] = table[types[e],:]
KERNEL(type_rows)(float *out, const float *table, const u32 *types, i64 entries, i64 cols) {
	EACH(i, entries *cols) out[i] = table[types[i / cols] * cols + i % cols];
}

// sums (parts,values): part p has the sums of dout's rows of each type, of the size entries from
// p*size on, in their order. Each thread has a column of a part to itself.
KERNEL(type_rows_grad)(float *sums, const float *dout, const u32 *types, i64 entries, i64 cols,
	   i64 values, i64 size, i64 parts) {
	EACH(t, parts *cols) {
		i64 part = t / cols, col = t % cols;
		float *own = sums + part * values;
		for (i64 i = col; i < values; i += cols) own[i] = 0;
		for (i64 e = part * size; e < entries && e < (part + 1) * size; e++)
			own[types[e] * cols + col] += dout[e * cols + col];
	}
}
