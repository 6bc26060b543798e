// Sums of rows with weights, and what makes such weights. Entry e has a value for each of some
// heads, at e*heads+h. Rows have the columns of a head side by side: head h has those from h*cols
// on. A kernel that needs the list of an entry is given entryList.
#include "halves.h"
#include "lists.h"

template <class X>
DEV void weighted_sums(Result out, const X *x, const float *w, Lists l, const u32 *idx, i64 heads,
	   i64 cols, i64 shared, i64 acc, i64 wide) {
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, heads * cols,
			[=](i64, u32 e, i64 c) {
				i64 h = c / cols;
				i64 at = shared ? idx[e] * cols + c % cols : idx[e] * heads * cols + c;
				return load<V>(x + at) * w[e * heads + h];
			},
			[=](i64 i, i64 c, V s) {
				i64 to = i * heads * cols + c;
				out.store(to, acc ? out.load<V>(to) + s : s);
			});
	};
	by_pieces<X>(wide, sum);
}

// out[i,h,:] (+)= the sum of w[e,h]*x[idx[e],h,:]; with shared, every head reads all of a row of
// cols
KERNEL(weighted_sum)(float *out, const float *x, const float *w, const u32 *off, const u32 *idx,
	   i64 lists, const u32 *longs, float *parts, i64 join, i64 heads, i64 cols, i64 shared,
	   i64 acc, i64 wide) {
	Lists l = {off, lists, longs, parts, join};
	weighted_sums({out, 0}, x, w, l, idx, heads, cols, shared, acc, wide);
}

// the same of rows of bfloat16, to float32 or with narrow to bfloat16
KERNEL(weighted_sum_half)(void *out, const Half *x, const float *w, const u32 *off, const u32 *idx,
	   i64 lists, const u32 *longs, float *parts, i64 join, i64 heads, i64 cols, i64 shared,
	   i64 acc, i64 wide, i64 narrow) {
	Lists l = {off, lists, longs, parts, join};
	weighted_sums({out, narrow}, x, w, l, idx, heads, cols, shared, acc, wide);
}

template <class X>
DEV void weighted_sum_grads(float *dx, const X *dout, const float *w, Lists l, const u32 *idx,
	   const u32 *entry, i64 heads, i64 cols, i64 shared, i64 fresh, i64 wide) {
	i64 width = shared ? cols : heads * cols;
	auto sum = [=](auto kind) {
		typedef decltype(kind) V;
		sum_lists<V>(
			l, width,
			[=](i64, u32 k, i64 c) {
				const X *row = dout + idx[k] * heads * cols;
				const float *own = w + entry[k] * heads;
				if (!shared) return load<V>(row + c) * own[c / cols];
				V s = V();
				for (i64 h = 0; h < heads; h++) s = s + load<V>(row + h * cols + c) * own[h];
				return s;
			},
			[=](i64 r, i64 c, V s) {
				float *to = dx + r * width + c;
				store(to, r < fresh ? s : load<V>(to) + s);
			});
	};
	by_pieces<X>(wide, sum);
}

// dx[r,h,:] (+)= the sum of w[entry[k],h]*dout[idx[k],h,:] over the transposed entries k of row r;
// with shared, dx is (rows,cols), and the heads are added up. The first fresh rows are overwritten.
KERNEL(weighted_sum_grad)(float *dx, const float *dout, const float *w, const u32 *off,
	   const u32 *idx, const u32 *entry, i64 rows, const u32 *longs, float *parts, i64 join,
	   i64 heads, i64 cols, i64 shared, i64 fresh, i64 wide) {
	Lists l = {off, rows, longs, parts, join};
	weighted_sum_grads(dx, dout, w, l, idx, entry, heads, cols, shared, fresh, wide);
}

// the same of dout in bfloat16
KERNEL(weighted_sum_grad_half)(float *dx, const Half *dout, const float *w, const u32 *off,
	   const u32 *idx, const u32 *entry, i64 rows, const u32 *longs, float *parts, i64 join,
	   i64 heads, i64 cols, i64 shared, i64 fresh, i64 wide) {
	Lists l = {off, rows, longs, parts, join};
	weighted_sum_grads(dx, dout, w, l, idx, entry, heads, cols, shared, fresh, wide);
}

template <class X>
DEV void entry_dots(float *dw, const X *g, const X *x, const u32 *entryList, const u32 *idx,
	   i64 entries, i64 heads, i64 cols, i64 lanes, i64 shared, i64 wide) {
	auto dots = [=](auto kind) {
		typedef decltype(kind) V;
		i64 atOnce = 32 / lanes, all = entries * heads;
		EACH_WARP(u, (all + atOnce - 1) / atOnce) {
			i64 t = u * atOnce + lane() / lanes, e = (t < all ? t : 0) / heads, h = t % heads;
			const X *own = g + (entryList[e] * heads + h) * cols;
			const X *row = x + (shared ? idx[e] * cols : (idx[e] * heads + h) * cols);
			float sum = 0;
			for (i64 c = lane() % lanes * Wide<V>::values; c < cols; c += lanes * Wide<V>::values)
				sum += sum_of(load<V>(own + c) * load<V>(row + c));
			sum = group_sum(sum, lanes);
			if (t < all && lane() % lanes == 0) dw[t] = sum;
		}
	};
	by_pieces<X>(wide, dots);
}

// dw[e,h] = g[entryList[e],h,:] times x[idx[e],h,:]; with shared, x[idx[e],:]
KERNEL(entry_dot)(float *dw, const float *g, const float *x, const u32 *entryList, const u32 *idx,
	   i64 entries, i64 heads, i64 cols, i64 lanes, i64 shared, i64 wide) {
	entry_dots(dw, g, x, entryList, idx, entries, heads, cols, lanes, shared, wide);
}

// the same of bfloat16
KERNEL(entry_dot_half)(float *dw, const Half *g, const Half *x, const u32 *entryList, const u32 *idx,
	   i64 entries, i64 heads, i64 cols, i64 lanes, i64 shared, i64 wide) {
	entry_dots(dw, g, x, entryList, idx, entries, heads, cols, lanes, shared, wide);
}

DEV float leaky(float v, float slope) { return v > 0 ? v : slope * v; }

// s[e,h] = leaky(src[idx[e],h] + dst[entryList[e],h])
KERNEL(scores)(float *s, const float *src, const float *dst, const u32 *entryList, const u32 *idx,
	   i64 entries, i64 heads, f64 slope) {
	EACH(t, entries *heads) {
		i64 e = t / heads, h = t % heads;
		s[t] = leaky(src[idx[e] * heads + h] + dst[entryList[e] * heads + h], (float)slope);
	}
}

// out[i,h] = the sum of the entries' values x[e,h]
KERNEL(entry_to_list)(float *out, const float *x, const u32 *off, i64 lists, const u32 *longs,
	   float *parts, i64 join, i64 heads) {
	sum_lists<float>(
		{off, lists, longs, parts, join}, heads, [=](i64, u32 e, i64 h) { return x[e * heads + h]; },
		[=](i64 i, i64 h, float s) { out[i * heads + h] = s; });
}

// out[r,h] (+)= the sum of x[entry[k],h] over the transposed entries k of row r
KERNEL(entry_to_row)(float *out, const float *x, const u32 *off, const u32 *entry, i64 rows,
	   const u32 *longs, float *parts, i64 join, i64 heads, i64 fresh) {
	sum_lists<float>(
		{off, rows, longs, parts, join}, heads, [=](i64, u32 k, i64 h) { return x[entry[k] * heads + h]; },
		[=](i64 r, i64 h, float s) {
			float *to = out + r * heads + h;
			*to = r < fresh ? s : *to + s;
		});
}

// out[e] = src[idx[e]]*dst[entryList[e]]
KERNEL(entry_product)(float *out, const float *src, const float *dst, const u32 *entryList,
	   const u32 *idx, i64 entries) {
	EACH(e, entries) out[e] = src[idx[e]] * dst[entryList[e]];
}

// s[e,h] = the sum over c of att[h,c]*leaky(src[idx[e],h,c] + dst[entryList[e],h,c])
KERNEL(scores2)(float *s, const float *src, const float *dst, const float *att,
	   const u32 *entryList, const u32 *idx, i64 entries, i64 heads, i64 cols, f64 slope) {
	EACH_WARP(t, entries *heads) {
		i64 e = t / heads, h = t % heads;
		const float *row = src + (idx[e] * heads + h) * cols;
		const float *own = dst + (entryList[e] * heads + h) * cols;
		float sum = 0;
		for (i64 c = lane(); c < cols; c += 32)
			sum += att[h * cols + c] * leaky(row[c] + own[c], (float)slope);
		sum = warp_sum(sum);
		if (lane() == 0) s[t] = sum;
	}
}

// ddst[i,h,c] = the sum over the entries e of list i of ds[e,h]*att[h,c]*the slope of leaky there
KERNEL(scores2_grad_list)(float *ddst, const float *ds, const float *src, const float *dst,
	   const float *att, const u32 *off, const u32 *idx, i64 lists, const u32 *longs,
	   float *parts, i64 join, i64 heads, i64 cols, f64 slope) {
	i64 width = heads * cols;
	sum_lists<float>(
		{off, lists, longs, parts, join}, width,
		[=](i64 i, u32 e, i64 c) {
			float v = src[idx[e] * width + c] + dst[i * width + c];
			return ds[e * heads + c / cols] * (v > 0 ? 1 : (float)slope);
		},
		[=](i64 i, i64 c, float s) { ddst[i * width + c] = s * att[c]; });
}

// share (lists,heads*cols) is each list's part of the gradient of att: the sum over its entries e of
// ds[e,h]*leaky there
KERNEL(scores2_grad_share)(float *share, const float *ds, const float *src, const float *dst,
	   const u32 *off, const u32 *idx, i64 lists, const u32 *longs, float *parts, i64 join,
	   i64 heads, i64 cols, f64 slope) {
	i64 width = heads * cols;
	sum_lists<float>(
		{off, lists, longs, parts, join}, width,
		[=](i64 i, u32 e, i64 c) {
			float v = src[idx[e] * width + c] + dst[i * width + c];
			return ds[e * heads + c / cols] * leaky(v, (float)slope);
		},
		[=](i64 i, i64 c, float s) { share[i * width + c] = s; });
}

// dsrc[r,h,c] (+)= the sum over the transposed entries k of row r of ds[entry[k],h]*att[h,c]*the
// slope of leaky there
KERNEL(scores2_grad_row)(float *dsrc, const float *ds, const float *src, const float *dst,
	   const float *att, const u32 *off, const u32 *idx, const u32 *entry, i64 rows,
	   const u32 *longs, float *parts, i64 join, i64 heads, i64 cols, f64 slope, i64 fresh) {
	i64 width = heads * cols;
	sum_lists<float>(
		{off, rows, longs, parts, join}, width,
		[=](i64 r, u32 k, i64 c) {
			float v = src[r * width + c] + dst[idx[k] * width + c];
			return ds[entry[k] * heads + c / cols] * (v > 0 ? 1 : (float)slope);
		},
		[=](i64 r, i64 c, float s) {
			float *to = dsrc + r * width + c;
			*to = (r < fresh ? 0 : *to) + s * att[c];
		});
}
