// Reductions of rows by lists, and their gradients. A gradient of rows is a sum over transposed
// lists: those that, for each row, have the numbers of the lists that it is in.
#include "dropout.h"
#include "halves.h"
#include "lists.h"

template <class Out, class X>
DEV void segment_sums(Out *out, const X *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 cols, i64 mean, i64 fours) {
	Lists l = {off, lists, longs};
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

// out[i,:] = the sum of the rows x[idx[e],:], or their mean
KERNEL(segment_sum)(float *out, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 cols, i64 mean, i64 fours) {
	segment_sums(out, x, off, idx, lists, longs, cols, mean, fours);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_sum_half)(void *out, const Half *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 cols, i64 mean, i64 fours, i64 narrow) {
	if (narrow) segment_sums((Half *)out, x, off, idx, lists, longs, cols, mean, fours);
	else segment_sums((float *)out, x, off, idx, lists, longs, cols, mean, fours);
}

template <class Out, class X>
DEV void dropped_means(Out *out, const X *x, const u32 *off, const u32 *idx, const u32 *at,
	   i64 lists, const u32 *longs, i64 cols, const u64 *key, i64 threshold, f64 factor,
	   i64 fours) {
	Lists l = {off, lists, longs};
	Dropped dropped = {key[0], (u32)threshold, (float)factor};
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

// out[i,:] = the mean of the rows x[idx[e],:] after dropout, in which they are the rows at[e]
KERNEL(segment_mean_dropout)(float *out, const float *x, const u32 *off, const u32 *idx,
	   const u32 *at, i64 lists, const u32 *longs, i64 cols, const u64 *key, i64 threshold,
	   f64 factor, i64 fours) {
	dropped_means(out, x, off, idx, at, lists, longs, cols, key, threshold, factor, fours);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_mean_dropout_half)(void *out, const Half *x, const u32 *off, const u32 *idx,
	   const u32 *at, i64 lists, const u32 *longs, i64 cols, const u64 *key, i64 threshold,
	   f64 factor, i64 fours, i64 narrow) {
	if (narrow)
		dropped_means((Half *)out, x, off, idx, at, lists, longs, cols, key, threshold, factor,
					  fours);
	else
		dropped_means((float *)out, x, off, idx, at, lists, longs, cols, key, threshold, factor,
					  fours);
}

template <class X>
DEV void segment_grads(float *dx, const X *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 cols, i64 fresh, i64 fours) {
	Lists l = {off, rows, longs};
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

// dx[r,:] (+)= the sum of the rows dout[idx[k],:] over the transposed entries k of row r, each
// times the weight of its list; without weights, times 1. The first fresh rows are overwritten.
KERNEL(segment_grad)(float *dx, const float *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 cols, i64 fresh, i64 fours) {
	segment_grads(dx, dout, weight, off, idx, rows, longs, cols, fresh, fours);
}

// the same of bfloat16
KERNEL(segment_grad_half)(float *dx, const Half *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 cols, i64 fresh, i64 fours) {
	segment_grads(dx, dout, weight, off, idx, rows, longs, cols, fresh, fours);
}

enum : u32 { NoEntry = 0xffffffffu };

// Largest is the largest value so far, and its entry: of equal ones the first, and a NaN before all
// numbers.
struct Largest {
	float value = 0;
	u32 entry = NoEntry;

	MEMBER void take(float v, u32 e) {
		bool nan = v != v, has = value != value;
		bool beats = entry == NoEntry || (nan ? !has : v > value);
		bool equals = nan ? has : v == value;
		if (!beats && !(equals && e < entry)) return;
		value = v;
		entry = e;
	}
};

template <class Out, class X>
DEV void segment_maxima(Out *out, u32 *arg, const X *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 cols) {
	auto value = [=](u32 e, i64 c) { return load<float>(x + idx[e] * cols + c); };
	EACH(t, lists *cols) {
		i64 i = t / cols, c = t % cols;
		if (off[i + 1] - off[i] > LongList) continue;
		Largest l;
		for (u32 e = off[i]; e < off[i + 1]; e++) l.take(value(e, c), e);
		store(out + t, l.value);
		arg[t] = l.entry == NoEntry ? NoEntry : idx[l.entry];
	}
	SHARED float values[Warps][32];
	SHARED u32 entries[Warps][32];
	i64 chunks = (cols + 31) / 32;
	EACH_BLOCK(u, longs[0] * chunks) {
		i64 i = longs[1 + u / chunks], c = u % chunks * 32 + lane();
		Largest l;
		if (c < cols)
			for (u32 e = off[i] + warp_in_block(); e < off[i + 1]; e += Warps) l.take(value(e, c), e);
		values[warp_in_block()][lane()] = l.value;
		entries[warp_in_block()][lane()] = l.entry;
		barrier();
		if (warp_in_block() == 0 && c < cols) {
			for (int w = 1; w < Warps; w++) l.take(values[w][lane()], entries[w][lane()]);
			store(out + i * cols + c, l.value);
			arg[i * cols + c] = idx[l.entry];
		}
		barrier();
	}
}

// out[i,:] is the largest value of each column of the rows x[idx[e],:], and arg the number of the
// row that has it, of equal ones that which is named first: 0, and no row, if there are none. A NaN
// is larger than any number.
KERNEL(segment_max)(float *out, u32 *arg, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, i64 cols) {
	segment_maxima(out, arg, x, off, idx, lists, longs, cols);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_max_half)(void *out, u32 *arg, const Half *x, const u32 *off, const u32 *idx,
	   i64 lists, const u32 *longs, i64 cols, i64 narrow) {
	if (narrow) segment_maxima((Half *)out, arg, x, off, idx, lists, longs, cols);
	else segment_maxima((float *)out, arg, x, off, idx, lists, longs, cols);
}

// dx[r,:] (+)= the values of dout whose arg is r, over the lists that row r is in, once each
KERNEL(segment_max_grad)(float *dx, const float *dout, const u32 *arg, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, i64 cols, i64 fresh) {
	Lists l = {off, rows, longs};
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
