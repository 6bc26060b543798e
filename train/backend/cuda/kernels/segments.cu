// Reductions of rows by lists, and their gradients. A gradient of rows is a sum over transposed
// lists: those that, for each row, have the numbers of the lists that it is in.
#include "dropout.h"
#include "lists.h"

// out[i,:] = the sum of the rows x[idx[e],:], or their mean
KERNEL(segment_sum)(float *out, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 longCount, i64 cols, i64 mean, i64 fours) {
	Lists l = {off, lists, longs, longCount};
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, cols, [=](i64, u32 e, i64 c) { return load<V>(x + idx[e] * cols + c); },
			[=](i64 i, i64 c, V s) {
				u32 n = off[i + 1] - off[i];
				store(out + i * cols + c, mean && n > 0 ? s * (1 / (float)n) : s);
			});
	};
	if (fours) sum(Four());
	else sum(0.0f);
}

// out[i,:] = the mean of the rows x[idx[e],:] after dropout, in which they are the rows at[e]
KERNEL(segment_mean_dropout)(float *out, const float *x, const u32 *off, const u32 *idx,
	   const u32 *at, i64 lists, const u32 *longs, i64 longCount, i64 cols, i64 key, i64 threshold,
	   f64 factor, i64 fours) {
	Lists l = {off, lists, longs, longCount};
	Dropped dropped = {(u64)key, (u32)threshold, (float)factor};
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, cols,
			[=](i64, u32 e, i64 c) {
				i64 position = at[e] * cols + c;
				return each(load<V>(x + idx[e] * cols + c),
							[=](float v, int k) { return dropped.of(v, position + k); });
			},
			[=](i64 i, i64 c, V s) {
				u32 n = off[i + 1] - off[i];
				store(out + i * cols + c, n > 0 ? s * (1 / (float)n) : s);
			});
	};
	if (fours) sum(Four());
	else sum(0.0f);
}

// dx[r,:] (+)= the sum of the rows dout[idx[k],:] over the transposed entries k of row r, each
// times the weight of its list; without weights, times 1. The first fresh rows are overwritten.
KERNEL(segment_grad)(float *dx, const float *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 longCount, i64 cols, i64 fresh, i64 fours) {
	Lists l = {off, rows, longs, longCount};
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, cols,
			[=](i64, u32 k, i64 c) {
				V v = load<V>(dout + idx[k] * cols + c);
				return weight ? v * weight[idx[k]] : v;
			},
			[=](i64 r, i64 c, V s) {
				float *to = dx + r * cols + c;
				store(to, r < fresh ? s : load<V>(to) + s);
			});
	};
	if (fours) sum(Four());
	else sum(0.0f);
}

// out[i,:] is the largest value of each column of the rows x[idx[e],:], and arg the number of the
// row that has it, of equal ones that which is named first: 0, and no row, if there are none. A NaN
// is larger than any number.
KERNEL(segment_max)(float *out, u32 *arg, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   i64 cols) {
	EACH(t, lists *cols) {
		i64 i = t / cols, c = t % cols;
		float best = 0;
		u32 row = 0xffffffffu;
		for (u32 e = off[i]; e < off[i + 1]; e++) {
			float v = x[idx[e] * cols + c];
			if (e > off[i] && (v <= best || best != best)) continue;
			best = v;
			row = idx[e];
		}
		out[t] = best;
		arg[t] = row;
	}
}

// dx[r,:] (+)= the values of dout whose arg is r, over the lists that row r is in, once each
KERNEL(segment_max_grad)(float *dx, const float *dout, const u32 *arg, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 longCount, i64 cols, i64 fresh) {
	Lists l = {off, rows, longs, longCount};
	sum_lists<float>(
		l, cols,
		[=](i64 r, u32 k, i64 c) {
			bool again = k > off[r] && idx[k] == idx[k - 1];
			i64 at = idx[k] * cols + c;
			return !again && arg[at] == r ? dout[at] : 0;
		},
		[=](i64 r, i64 c, float s) {
			float *to = dx + r * cols + c;
			*to = r < fresh ? s : *to + s;
		});
}

// entryList[e] is the list of entry e.
KERNEL(entry_lists)(u32 *entryList, const u32 *off, i64 lists, i64 entries) {
	EACH(e, entries) {
		i64 low = 0, high = lists; // off[low] <= e < off[high]
		while (high - low > 1) {
			i64 middle = (low + high) / 2;
			if (off[middle] <= e) low = middle;
			else high = middle;
		}
		entryList[e] = (u32)low;
	}
}
