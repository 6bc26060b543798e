// Reductions of rows by lists, and their gradients. A gradient of rows is a sum over transposed
// lists: those that, for each row, have the numbers of the lists that it is in.
#include "dropout.h"
#include "halves.h"
#include "lists.h"

template <class X>
DEV void segment_sums(Result out, const X *x, Lists l, const u32 *idx, i64 cols, i64 mean,
	   i64 wide) {
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, cols, [=](i64, u32 e, i64 c) { return load<V>(x + idx[e] * cols + c); },
			[=](i64 i, i64 c, V s) {
				u32 n = l.off[i + 1] - l.off[i];
				out.store(i * cols + c, mean && n > 0 ? s * (1 / (float)n) : s);
			});
	};
	by_pieces<X>(wide, sum);
}

// out[i,:] = the sum of the rows x[idx[e],:], or their mean
KERNEL(segment_sum)(float *out, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, float *parts, i64 join, i64 cols, i64 mean, i64 wide) {
	segment_sums({out, 0}, x, {off, lists, longs, parts, join}, idx, cols, mean, wide);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_sum_half)(void *out, const Half *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, float *parts, i64 join, i64 cols, i64 mean, i64 wide, i64 narrow) {
	Lists l = {off, lists, longs, parts, join};
	segment_sums({out, narrow}, x, l, idx, cols, mean, wide);
}

template <class X>
DEV void dropped_means(Result out, const X *x, Lists l, const u32 *idx, const u32 *at, i64 cols,
	   Dropped dropped, i64 wide) {
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
				u32 n = l.off[i + 1] - l.off[i];
				out.store(i * cols + c, n > 0 ? s * (1 / (float)n) : s);
			});
	};
	by_pieces<X>(wide, sum);
}

// out[i,:] = the mean of the rows x[idx[e],:] after dropout, in which they are the rows at[e]
KERNEL(segment_mean_dropout)(float *out, const float *x, const u32 *off, const u32 *idx,
	   const u32 *at, i64 lists, const u32 *longs, float *parts, i64 join, i64 cols,
	   const u64 *key, i64 threshold, f64 factor, i64 wide) {
	Dropped dropped = {key[0], (u32)threshold, (float)factor};
	dropped_means({out, 0}, x, {off, lists, longs, parts, join}, idx, at, cols, dropped, wide);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_mean_dropout_half)(void *out, const Half *x, const u32 *off, const u32 *idx,
	   const u32 *at, i64 lists, const u32 *longs, float *parts, i64 join, i64 cols,
	   const u64 *key, i64 threshold, f64 factor, i64 wide, i64 narrow) {
	Lists l = {off, lists, longs, parts, join};
	Dropped dropped = {key[0], (u32)threshold, (float)factor};
	dropped_means({out, narrow}, x, l, idx, at, cols, dropped, wide);
}

template <class X>
DEV void segment_grads(float *dx, const X *dout, const float *weight, Lists l, const u32 *idx,
	   i64 cols, i64 fresh, i64 wide) {
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
	by_pieces<X>(wide, sum);
}

// dx[r,:] (+)= the sum of the rows dout[idx[k],:] over the transposed entries k of row r, each
// times the weight of its list; without weights, times 1. The first fresh rows are overwritten.
KERNEL(segment_grad)(float *dx, const float *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, float *parts, i64 join, i64 cols, i64 fresh,
	   i64 wide) {
	segment_grads(dx, dout, weight, {off, rows, longs, parts, join}, idx, cols, fresh, wide);
}

// the same of bfloat16
KERNEL(segment_grad_half)(float *dx, const Half *dout, const float *weight, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, float *parts, i64 join, i64 cols, i64 fresh,
	   i64 wide) {
	segment_grads(dx, dout, weight, {off, rows, longs, parts, join}, idx, cols, fresh, wide);
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

// largest_of_warps gives the lanes of the first warp the Largest of those that the lanes of all warps
// have in their place.
DEV Largest largest_of_warps(Largest l, float (*values)[32], u32 (*entries)[32]) {
	values[warp_in_block()][lane()] = l.value;
	entries[warp_in_block()][lane()] = l.entry;
	barrier();
	if (warp_in_block() == 0)
		for (int w = 1; w < Warps; w++) l.take(values[w][lane()], entries[w][lane()]);
	barrier();
	return l;
}

template <class Out, class X>
DEV void segment_maxima(Out *out, u32 *arg, const X *x, Lists l, const u32 *idx, i64 cols) {
	auto value = [=](u32 e, i64 c) { return load<float>(x + idx[e] * cols + c); };
	auto end = [=](i64 i, i64 c, Largest most) {
		store(out + i * cols + c, most.value);
		arg[i * cols + c] = most.entry == NoEntry ? NoEntry : idx[most.entry];
	};
	if (l.join) {
		EACH(t, l.hubs() * cols) {
			Hub h = l.hub(t / cols);
			i64 c = t % cols;
			Largest most;
			for (i64 part = h.first; part < h.end; part++) {
				const float *at = l.parts + 2 * part * cols + c;
				most.take(at[0], ((const u32 *)at)[cols]);
			}
			end(h.list, c, most);
		}
		return;
	}
	EACH(t, l.count *cols) {
		i64 i = t / cols, c = t % cols;
		if (l.isLong(i)) continue;
		Largest most;
		for (u32 e = l.off[i]; e < l.off[i + 1]; e++) most.take(value(e, c), e);
		end(i, c, most);
	}
	SHARED float values[Warps][32];
	SHARED u32 entries[Warps][32];
	i64 chunks = (cols + 31) / 32;
	EACH_BLOCK(u, l.partCount() * chunks) {
		Part p = l.part(u / chunks);
		i64 c = u % chunks * 32 + lane();
		Largest most;
		if (c < cols)
			for (u32 e = p.first + warp_in_block(); e < p.end; e += Warps) most.take(value(e, c), e);
		most = largest_of_warps(most, values, entries);
		if (warp_in_block() != 0 || c >= cols) continue;
		float *at = l.parts + 2 * (u / chunks) * cols + c;
		if (p.whole) {
			end(p.list, c, most);
		} else {
			at[0] = most.value;
			((u32 *)at)[cols] = most.entry;
		}
	}
}

// out[i,:] is the largest value of each column of the rows x[idx[e],:], and arg the number of the
// row that has it, of equal ones that which is named first: 0, and no row, if there are none. A NaN
// is larger than any number.
KERNEL(segment_max)(float *out, u32 *arg, const float *x, const u32 *off, const u32 *idx, i64 lists,
	   const u32 *longs, float *parts, i64 join, i64 cols) {
	segment_maxima(out, arg, x, {off, lists, longs, parts, join}, idx, cols);
}

// the same of bfloat16, to float32 or with narrow to bfloat16
KERNEL(segment_max_half)(void *out, u32 *arg, const Half *x, const u32 *off, const u32 *idx,
	   i64 lists, const u32 *longs, float *parts, i64 join, i64 cols, i64 narrow) {
	Lists l = {off, lists, longs, parts, join};
	if (narrow) segment_maxima((Half *)out, arg, x, l, idx, cols);
	else segment_maxima((float *)out, arg, x, l, idx, cols);
}

// dx[r,:] (+)= the values of dout whose arg is r, over the lists that row r is in, once each
KERNEL(segment_max_grad)(float *dx, const float *dout, const u32 *arg, const u32 *off,
	   const u32 *idx, i64 rows, const u32 *longs, float *parts, i64 join, i64 cols, i64 fresh) {
	sum_lists<float>(
		{off, rows, longs, parts, join}, cols,
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
