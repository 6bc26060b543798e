// Sums over lists. List i has the entries off[i] to off[i+1]-1, and entry e names the row idx[e].
// The entries of a list are added up in their order by the thread that has a column of it; those of
// long lists, whose numbers the host gives, by the warps of a block: each adds up every eighth
// entry, and these eight sums are added in order. So the bits depend on the lists alone.
#pragma once
#include "threads.h"

// LongList is the entries of a list that a block adds up: the host has the same number.
enum { LongList = 512 };

// Lists are those of a launch.
struct Lists {
	const u32 *off;
	i64 count;
	const u32 *longs; // how many long lists there are, and then their numbers
};

// sum_lists calls end(list, column, sum) with the sums of entry(list, e, column) over each list's
// entries, for each or four of cols columns.
template <class V, class Entry, class End>
DEV void sum_lists(Lists l, i64 cols, Entry entry, End end) {
	const i64 wide = Wide<V>::values, pieces = cols / wide;
	EACH(t, l.count *pieces) {
		i64 i = t / pieces, c = t % pieces * wide;
		u32 first = l.off[i], last = l.off[i + 1];
		if (last - first > LongList) continue;
		V sum = V();
		for (u32 e = first; e < last; e++) sum = sum + entry(i, e, c);
		end(i, c, sum);
	}
	SHARED V sums[Warps][32];
	i64 chunks = (pieces + 31) / 32;
	EACH_BLOCK(u, l.longs[0] * chunks) {
		i64 i = l.longs[1 + u / chunks], c = (u % chunks * 32 + lane()) * wide;
		V sum = V();
		if (c < cols)
			for (u32 e = l.off[i] + warp_in_block(); e < l.off[i + 1]; e += Warps)
				sum = sum + entry(i, e, c);
		sums[warp_in_block()][lane()] = sum;
		barrier();
		if (warp_in_block() == 0 && c < cols) {
			for (int w = 1; w < Warps; w++) sum = sum + sums[w][lane()];
			end(i, c, sum);
		}
		barrier();
	}
}
