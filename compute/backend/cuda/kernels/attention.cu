// Attention over lists: the softmax of scores, and the sum of rows with these weights, in one pass
// over a list, and the gradient in one over a transposed list. A warp has a list, some heads of it
// and as many columns as its lanes read at a time: lanes, a power of two, are those of a head. The
// softmax is made as entries come (Milakov and Gimelshein, "Online normalizer calculation for
// softmax"). Long lists are in parts, as those of sum_lists.
#include "dropout.h"
#include "halves.h"
#include "lists.h"
#include "numbers.h"

// AtOnce is how many entries a warp reads before it needs the first: a list is short, and its warp
// would wait for each.
enum { AtOnce = 4 };

DEV Four exchange(Four v, int mask) {
	return {exchange(v.a, mask), exchange(v.b, mask), exchange(v.c, mask), exchange(v.d, mask)};
}

// Kept is what is left of the softmax of a list and a head: what scores add for the list, the
// largest score, and 1 over the sum of exponentials.
struct Kept {
	float own, most, inverse;

	MEMBER static Kept load(const float *kept, i64 at) {
		Four k = ::load<Four>(kept + at * 4);
		return {k.a, k.b, k.c};
	}
};

DEV float leaky_score(float v, float slope) { return v > 0 ? v : slope * v; }

// Heads are how heads and columns are shared among the lanes of warps.
struct Heads {
	i64 heads, cols, lanes, shared;

	template <class V> MEMBER i64 span() const { return lanes * Wide<V>::values; }
	template <class V> MEMBER i64 chunks() const { return (cols + span<V>() - 1) / span<V>(); }
	MEMBER i64 atOnce() const { return 32 / lanes; }
	MEMBER i64 passes() const { return (heads + atOnce() - 1) / atOnce(); }
	// head is the lane's in a pass, which may be none, and column its first in a chunk.
	MEMBER i64 head(i64 pass) const { return pass * atOnce() + lane() / lanes; }
	template <class V> MEMBER i64 column(i64 chunk) const {
		return chunk * span<V>() + lane() % lanes * Wide<V>::values;
	}
	// first and read are where a head's columns begin in a row of all heads, and in one that is read.
	MEMBER i64 first(i64 row, i64 h) const { return (row * heads + h) * cols; }
	MEMBER i64 read(i64 row, i64 h) const { return shared ? row * cols : first(row, h); }
};

// Softened is a sum with weights that are a softmax, as far as entries have come.
template <class V> struct Softened {
	float most = -__builtin_inff(), total = 0;
	V sum = V();

	// take adds n entries at once, whose sums begin at a largest score of their own.
	MEMBER void take(float score, float n, V v) {
		float d = score - most, x = softened(d > 0 ? -d : d);
		float old = d > 0 ? x : 1, now = d > 0 ? 1 : x;
		sum = sum * old + v * now;
		total = total * old + n * now;
		if (!(d <= 0)) most = score;
	}
	MEMBER void take(const Softened &o) {
		if (o.total != 0) take(o.most, o.total, o.sum);
	}
};

template <class X> struct Attend {
	Result out;
	float *kept;
	const X *x;
	const float *src, *dst;
	const u32 *idx;
	Heads of;
	Dropped dropped;
	i64 firstDropped;
	float slope;
	float *ends; // of parts of hubs, for each head the largest score and the sum

	// over is the entries of a list from first on, every step-th.
	template <class V>
	MEMBER Softened<V> over(i64 list, u32 first, u32 end, u32 step, i64 h, i64 c) const {
		Softened<V> s;
		if (h >= of.heads) return s;
		float own = dst[list * of.heads + h];
		for (u32 e = first; e < end; e += AtOnce * step) {
			float scores[AtOnce];
			V v[AtOnce];
#pragma unroll
			for (int k = 0; k < AtOnce; k++) {
				i64 r = idx[e + k * step < end ? e + k * step : e];
				scores[k] = src[r * of.heads + h] + own;
				v[k] = load<V>(x + of.read(r, h) + (c < of.cols ? c : 0));
			}
#pragma unroll
			for (int k = 0; k < AtOnce; k++) {
				u32 at = e + k * step;
				if (at >= end) break;
				if (dropped.threshold)
					v[k] = v[k] * dropped.of(1, firstDropped + (i64)at * of.heads + h);
				s.take(leaky_score(scores[k], slope), 1, v[k]);
			}
		}
		return s;
	}
	// end writes the result of a list.
	template <class V> MEMBER void end(const Softened<V> &s, i64 list, i64 h, i64 c) const {
		if (h >= of.heads) return;
		bool none = s.total == 0;
		float inverse = none ? 0 : 1 / s.total;
		if (c < of.cols) out.store(of.first(list, h) + c, s.sum * inverse);
		i64 at = list * of.heads + h;
		if (c == 0) store(kept + at * 4, Four{dst[at], none ? 0 : s.most, inverse, 0});
	}
	// put and got are of the sums of a part of a hub.
	template <class V>
	MEMBER void put(const Lists &l, const Softened<V> &s, i64 part, i64 h, i64 c) const {
		if (h >= of.heads) return;
		if (c < of.cols) store(l.parts + of.first(part, h) + c, s.sum);
		if (c == 0) {
			ends[(part * of.heads + h) * 2] = s.most;
			ends[(part * of.heads + h) * 2 + 1] = s.total;
		}
	}
	template <class V> MEMBER Softened<V> got(const Lists &l, i64 part, i64 h, i64 c) const {
		Softened<V> s;
		if (h >= of.heads) return s;
		if (c < of.cols) s.sum = load<V>(l.parts + of.first(part, h) + c);
		s.most = ends[(part * of.heads + h) * 2];
		s.total = ends[(part * of.heads + h) * 2 + 1];
		return s;
	}

	template <class V> MEMBER void all(Lists l) const {
		i64 chunks = of.chunks<V>(), units = chunks * of.passes();
		if (l.join) {
			EACH_WARP(u, l.hubs() * units) {
				Hub hub = l.hub(u / units);
				i64 h = of.head(u % units / chunks), c = of.column<V>(u % chunks);
				Softened<V> s = got<V>(l, hub.first, h, c);
				for (i64 part = hub.first + 1; part < hub.end; part++) s.take(got<V>(l, part, h, c));
				end(s, hub.list, h, c);
			}
			return;
		}
		SHARED V sums[Warps][32];
		SHARED float most[Warps][32], total[Warps][32];
		by_warps(l, units, [=](Part p, i64 u, u32 first, u32 step) {
			i64 h = of.head(u % units / chunks), c = of.column<V>(u % chunks), w = warp_in_block();
			Softened<V> s = over<V>(p.list, first, p.end, step, h, c);
			if (step > 1) {
				sums[w][lane()] = s.sum;
				most[w][lane()] = s.most;
				total[w][lane()] = s.total;
				barrier();
				for (int k = 1; w == 0 && k < Warps; k++) {
					Softened<V> o;
					o.most = most[k][lane()], o.total = total[k][lane()], o.sum = sums[k][lane()];
					s.take(o);
				}
				barrier();
				if (w > 0) return;
			}
			if (p.whole) end(s, p.list, h, c);
			else put(l, s, u / units, h, c);
		});
	}
};

// out[i,h,:] = the sum of a[e,h]*x[idx[e],h,:], where a is the softmax over the entries e of list i
// of leaky(src[idx[e],h] + dst[i,h]), dropped out by the key at[0] where entry 0 has the position
// at[1]. kept (lists,heads,4) is what softmaxes leave. With shared every head reads whole rows.
KERNEL(attend)(float *out, float *kept, const float *x, const float *src, const float *dst,
	   const u32 *off, const u32 *idx, i64 lists, const u32 *longs, float *parts, i64 join,
	   float *ends, i64 heads, i64 cols, i64 lanes, i64 shared, f64 slope, const u64 *at,
	   i64 threshold, f64 factor, i64 fours) {
	Attend<float> a = {{out, 0}, kept, x, src, dst, idx, {heads, cols, lanes, shared},
					   {at[0], (u32)threshold, (float)factor}, (i64)at[1], (float)slope, ends};
	if (fours) a.all<Four>({off, lists, longs, parts, join});
	else a.all<float>({off, lists, longs, parts, join});
}

// the same of rows of bfloat16, to float32 or with narrow to bfloat16
KERNEL(attend_half)(void *out, float *kept, const Half *x, const float *src, const float *dst,
	   const u32 *off, const u32 *idx, i64 lists, const u32 *longs, float *parts, i64 join,
	   float *ends, i64 heads, i64 cols, i64 lanes, i64 shared, f64 slope, const u64 *at,
	   i64 threshold, f64 factor, i64 fours, i64 narrow) {
	Attend<Half> a = {{out, narrow}, kept, x, src, dst, idx,
					  {heads, cols, lanes, shared}, {at[0], (u32)threshold, (float)factor},
					  (i64)at[1], (float)slope, ends};
	if (fours) a.all<Four>({off, lists, longs, parts, join});
	else a.all<float>({off, lists, longs, parts, join});
}

template <class X> struct AttendGrad {
	float *dx, *dots;
	const X *dout, *x;
	const float *src, *kept;
	const u32 *idx, *entry;
	Heads of;
	Dropped dropped;
	i64 firstDropped;
	float slope;
	i64 fresh;

	// weight is that of an entry, after dropout, given what its score has of the row.
	MEMBER float weight(Kept k, float score, i64 at) const {
		float a = softened(leaky_score(score + k.own, slope) - k.most) * k.inverse;
		return dropped.threshold ? dropped.of(a, firstDropped + at) : a;
	}
	// rest is the lane's part of a product of the columns behind the first chunk.
	template <class V> MEMBER float rest(i64 list, i64 r, i64 h, i64 c) const {
		float sum = 0;
		for (c += of.span<V>(); c < of.cols; c += of.span<V>())
			sum += sum_of(load<V>(dout + of.first(list, h) + c) * load<V>(x + of.read(r, h) + c));
		return sum;
	}
	// over is the sum over transposed entries of row r from first on, every step-th: for the heads
	// of a pass, or where heads share rows of those of all, which the first lanes get.
	template <class V>
	MEMBER V over(i64 r, u32 first, u32 end, u32 step, i64 pass, i64 chunk) const {
		V sum = V();
		i64 passes = of.shared ? of.passes() : 1, c = of.column<V>(chunk);
		bool inside = c < of.cols;
		i64 column = inside ? c : 0, own = of.shared ? 0 : of.head(pass);
		V values = load<V>(x + of.read(r, own < of.heads ? own : 0) + column);
		u32 t = first;
		for (i64 p = 0; t < end;) {
			V g[AtOnce];
			Kept kept_of[AtOnce];
			float scores[AtOnce], dots_of[AtOnce];
			i64 lists[AtOnce], at[AtOnce]; // at is below zero for what is not there
#pragma unroll
			for (int k = 0; k < AtOnce; k++) {
				u32 there = t < end ? t : first;
				i64 h = of.head(pass + p), safe = h < of.heads ? h : 0;
				lists[k] = idx[there];
				at[k] = t < end && inside && h < of.heads ? (i64)entry[there] * of.heads + h : -1;
				g[k] = load<V>(dout + of.first(lists[k], safe) + column);
				kept_of[k] = Kept::load(kept, lists[k] * of.heads + safe);
				scores[k] = src[r * of.heads + safe];
				if (++p == passes) p = 0, t += step;
			}
#pragma unroll
			for (int k = 0; k < AtOnce; k++) {
				bool there = at[k] >= 0;
				if (there) sum = sum + g[k] * weight(kept_of[k], scores[k], at[k]);
				dots_of[k] = there ? sum_of(g[k] * values) : 0;
				if (there && chunk == 0 && of.span<V>() < of.cols)
					dots_of[k] += rest<V>(lists[k], r, at[k] % of.heads, c);
			}
			if (chunk > 0) continue;
#pragma unroll
			for (int k = 0; k < AtOnce; k++) {
				float dot = group_sum(dots_of[k], of.lanes);
				if (at[k] >= 0 && c == 0) dots[at[k]] = dot;
			}
		}
		for (int mask = 16; of.shared && mask >= of.lanes; mask /= 2) sum = sum + exchange(sum, mask);
		return sum;
	}

	template <class V> MEMBER void all(Lists l) const {
		i64 width = of.shared ? of.cols : of.heads * of.cols;
		auto add = [=](i64 r, i64 at, V s) {
			float *to = dx + r * width + at;
			store(to, r < fresh ? s : load<V>(to) + s);
		};
		if (l.join) return join_parts<V>(l, width, add);
		i64 chunks = of.chunks<V>(), units = of.shared ? chunks : chunks * of.passes();
		// where is the column of dx that the lane writes, below zero for none.
		auto where = [=](i64 u) {
			i64 h = of.shared ? lane() / of.lanes : of.head(u % units / chunks);
			i64 c = of.column<V>(u % chunks);
			return c < of.cols && h < (of.shared ? 1 : of.heads) ? h * of.cols + c : -1;
		};
		SHARED V sums[Warps][32];
		by_warps(l, units, [=](Part p, i64 u, u32 first, u32 step) {
			i64 w = warp_in_block(), at = where(u);
			V s = over<V>(p.list, first, p.end, step, u % units / chunks, u % chunks);
			if (step > 1) {
				sums[w][lane()] = s;
				barrier();
				for (int k = 1; w == 0 && k < Warps; k++) s = s + sums[k][lane()];
				barrier();
				if (w > 0) return;
			}
			if (at < 0) return;
			if (p.whole) add(p.list, at, s);
			else store(l.parts + u / units * width + at, s);
		});
	}
};

// dx[r,h,:] (+)= the sum of a[entry[k],h]*dout[idx[k],h,:] over the transposed entries k of row r,
// and dots[entry[k],h] = dout[idx[k],h,:] times x[r,h,:]; a are attend's weights after dropout. With
// shared, x and dx are (rows,cols), and the heads are added up. The first fresh rows of dx are
// overwritten.
KERNEL(attend_grad_rows)(float *__restrict dx, float *__restrict dots, const float *dout,
	   const float *x, const float *src, const float *kept, const u32 *off, const u32 *idx,
	   const u32 *entry, i64 rows, const u32 *longs, float *parts, i64 join, i64 heads, i64 cols,
	   i64 lanes, i64 shared, f64 slope, const u64 *at, i64 threshold, f64 factor, i64 fresh,
	   i64 fours) {
	AttendGrad<float> g = {dx, dots, dout, x, src, kept, idx, entry, {heads, cols, lanes, shared},
						   {at[0], (u32)threshold, (float)factor}, (i64)at[1], (float)slope, fresh};
	if (fours) g.all<Four>({off, rows, longs, parts, join});
	else g.all<float>({off, rows, longs, parts, join});
}

// the same of dout and x in bfloat16
KERNEL(attend_grad_rows_half)(float *__restrict dx, float *__restrict dots, const Half *dout,
	   const Half *x, const float *src, const float *kept, const u32 *off, const u32 *idx,
	   const u32 *entry, i64 rows, const u32 *longs, float *parts, i64 join, i64 heads, i64 cols,
	   i64 lanes, i64 shared, f64 slope, const u64 *at, i64 threshold, f64 factor, i64 fresh,
	   i64 fours) {
	AttendGrad<Half> g = {dx, dots, dout, x, src, kept, idx, entry, {heads, cols, lanes, shared},
						  {at[0], (u32)threshold, (float)factor}, (i64)at[1], (float)slope, fresh};
	if (fours) g.all<Four>({off, rows, longs, parts, join});
	else g.all<float>({off, rows, longs, parts, join});
}

// attend_scores_of works on the entries of a list that first and step say, as softmax_of does.
template <class Weight, class Sum>
DEV float attend_scores_of(float *ds, u32 begin, u32 end, i64 heads, i64 h, i64 first, i64 step,
						   Dropped dropped, i64 firstDropped, Weight weight, Sum sum) {
	float total = 0, all = 0;
	auto of_weight = [=](i64 e) { // the gradient in the weight before dropout
		float d = ds[e * heads + h];
		return dropped.threshold ? dropped.of(d, firstDropped + e * heads + h) : d;
	};
	for (i64 e = begin + first; e < end; e += step) {
		float slope;
		total += weight(e, &slope) * of_weight(e);
	}
	total = sum(total);
	for (i64 e = begin + first; e < end; e += step) {
		float slope, a = weight(e, &slope), d = a * (of_weight(e) - total) * slope;
		ds[e * heads + h] = d;
		all += d;
	}
	return sum(all);
}

// ds (entries,heads) has the gradients in attend's weights after dropout, and becomes that in the
// sums of which scores are made. ddst[i,h] = the sum of these of list i.
KERNEL(attend_grad_scores)(float *ds, float *ddst, const float *src, const float *kept,
	   const u32 *off, const u32 *idx, i64 lists, const u32 *longs, i64 heads, f64 slope,
	   const u64 *at, i64 threshold, f64 factor) {
	Dropped dropped = {at[0], (u32)threshold, (float)factor};
	i64 firstDropped = (i64)at[1];
	auto weight = [=](i64 list, i64 h) {
		Kept k = Kept::load(kept, list * heads + h);
		return [=](i64 e, float *slopeThere) {
			float v = src[(i64)idx[e] * heads + h] + k.own;
			*slopeThere = v > 0 ? 1 : (float)slope;
			return softened(v * *slopeThere - k.most) * k.inverse;
		};
	};
	EACH(t, lists *heads) {
		i64 i = t / heads, h = t % heads;
		if (off[i + 1] - off[i] > LongList) continue;
		ddst[t] = attend_scores_of(ds, off[i], off[i + 1], heads, h, 0, 1, dropped, firstDropped,
								   weight(i, h), [](float v) { return v; });
	}
	SHARED float room[Threads];
	EACH_BLOCK(u, longs[0] * heads) {
		i64 i = longs[LongHeader + 2 * (u / heads)], h = u % heads;
		if (longs[LongHeader + 2 * (u / heads) + 1] > 0) continue; // the first part does all
		float all = attend_scores_of(ds, off[i], off[i + 1], heads, h, thread_in_block(), Threads,
									 dropped, firstDropped, weight(i, h),
									 [=](float v) { return block_sum(v, room); });
		if (thread_in_block() == 0) ddst[i * heads + h] = all;
	}
}
