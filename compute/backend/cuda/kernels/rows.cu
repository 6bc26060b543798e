// Rows that are put together from several places.
#include "threads.h"

// out[i,:] = the row from[i] of kept, behind its keptRows rows that of held, and behind its heldRows
// rows the one that begins so many values into sent; zeros for the largest number. held and sent
// may be page-locked memory of the host, of which each row is read once over the bus.
KERNEL(pick_rows)(float *out, const float *kept, const float *held, const float *sent,
	   const u32 *from, i64 rows, i64 cols, i64 keptRows, i64 heldRows, i64 fours) {
	auto pick = [=](auto kind) {
		typedef decltype(kind) V;
		i64 pieces = cols / Wide<V>::values;
		EACH(t, rows *pieces) {
			i64 i = t / pieces, c = t % pieces * Wide<V>::values, row = from[i];
			V v = V();
			if (row != 0xffffffff) {
				const float *x = row < keptRows ? kept + row * cols
					: row < keptRows + heldRows ? held + (row - keptRows) * cols
					: sent + (row - keptRows - heldRows);
				v = load<V>(x + c);
			}
			store(out + i * cols + c, v);
		}
	};
	if (fours) pick(Four());
	else pick(0.0f);
}

// into[to[i],:] = rows[i,:], for those of count rows whose to is one of intoRows
KERNEL(put_rows)(float *into, const float *rows, const u32 *to, i64 count, i64 cols, i64 intoRows,
	   i64 fours) {
	auto put = [=](auto kind) {
		typedef decltype(kind) V;
		i64 pieces = cols / Wide<V>::values;
		EACH(t, count *pieces) {
			i64 i = t / pieces, c = t % pieces * Wide<V>::values, row = to[i];
			if (row < intoRows) store(into + row * cols + c, load<V>(rows + i * cols + c));
		}
	};
	if (fours) put(Four());
	else put(0.0f);
}
