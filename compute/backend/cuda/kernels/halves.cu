// Operations on single values of bfloat16.
#include "dropout.h"
#include "halves.h"

// out = x, rounded
KERNEL(narrow)(Half *out, const float *x, i64 n, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) { store(out + i, load<decltype(kind)>(x + i)); });
}

// out = x
KERNEL(widen)(float *out, const Half *x, i64 n, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) { store(out + i, load<decltype(kind)>(x + i)); });
}

template <class X>
DEV void activations(Half *out, const X *x, const float *bias, i64 n, i64 cols, i64 act,
	   Dropped dropped, i64 first) {
	EACH(i, n) {
		float v = load<float>(x + i);
		if (bias) v += bias[i % cols];
		if (act == 1 && v < 0) v = 0;
		if (act == 2 && !(v > 0)) v = exponential_less_one(v);
		store(out + i, dropped.threshold ? dropped.of(v, first + i) : v);
	}
}

// out[i,:] = x[i,:] + bias, if there is one, cut at zero if act is 1, ELU of it if act is 2, and
// dropped out if threshold is not 0, where the first value has the position at[1], by the key at[0].
// With wide x is of float32.
KERNEL(activate)(Half *out, const void *x, const float *bias, i64 n, i64 cols, i64 act,
	   const u64 *at, i64 threshold, f64 factor, i64 wide) {
	Dropped dropped = {at[0], (u32)threshold, (float)factor};
	if (wide) activations(out, (const float *)x, bias, n, cols, act, dropped, (i64)at[1]);
	else activations(out, (const Half *)x, bias, n, cols, act, dropped, (i64)at[1]);
}

template <class Out, class Y>
DEV void masked(Out *out, const float *dx, const Y *y, i64 n, f64 factor, i64 fours) {
	in_fours(n, fours, [=](i64 i, auto kind) {
		typedef decltype(kind) V;
		store(out + i, each(load<V>(dx + i), load<V>(y + i),
							[=](float g, float v) { return v > 0 ? g * (float)factor : 0.0f; }));
	});
}

// dx *= factor where y > 0, else 0
KERNEL(relu_grad_half)(float *dx, const Half *y, i64 n, f64 factor, i64 fours) {
	masked(dx, dx, y, n, factor, fours);
}

// out = dx*factor where y > 0, else 0. With wide y is of float32.
KERNEL(relu_grad_to)(Half *out, const float *dx, const void *y, i64 n, f64 factor, i64 fours,
	   i64 wide) {
	if (wide) masked(out, dx, (const float *)y, n, factor, fours);
	else masked(out, dx, (const Half *)y, n, factor, fours);
}

template <class Out>
DEV void elu_slopes(Out *out, const float *dx, const Half *y, i64 n, Dropped dropped, i64 first,
	   float kept) {
	EACH(i, n) {
		float g = dx[i], before = load<float>(y + i) * kept;
		if (!(before > 0)) g *= before + 1;
		store(out + i, dropped.threshold ? dropped.of(g, first + i) : g);
	}
}

// out = dx times the slope of ELU at y*kept, as it was before values were dropped out if threshold
// is not 0, and then dropped out as activate does. With wide out is of float32.
KERNEL(elu_grad_to)(void *out, const float *dx, const Half *y, i64 n, const u64 *at, i64 threshold,
	   f64 factor, f64 kept, i64 wide) {
	Dropped dropped = {at[0], (u32)threshold, (float)factor};
	if (wide) elu_slopes((float *)out, dx, y, n, dropped, (i64)at[1], (float)kept);
	else elu_slopes((Half *)out, dx, y, n, dropped, (i64)at[1], (float)kept);
}

// copy_columns of bfloat16
KERNEL(copy_columns_half)(Half *y, const Half *x, i64 rows, i64 cols, i64 ys, i64 to, i64 xs,
	   i64 from) {
	EACH(i, rows *cols) y[i / cols * ys + to + i % cols] = x[i / cols * xs + from + i % cols];
}
