// Sums over lists. List i has the entries off[i] to off[i+1]-1, and entry e names the row idx[e].
// The entries of a list are added up in their order by the thread that has a column of it. Those of
// long lists are cut into parts of a fixed size, which the host lists: a block adds up a part for 32
// columns, each of its warps every eighth entry, and these eight sums are added in order. The sums of
// the parts of a hub, a list of more than one part, are written down, and added in order by a second
// launch. So the bits depend on the lists alone, whatever block is first.
#pragma once
#include "threads.h"

// LongList is the entries of a list that blocks add up, and PartEntries those of a part of one: the
// host has the same numbers.
enum { LongList = 64, PartEntries = 512 };

// LongHeader is how many words stand before the parts of long lists: how many parts there are, how
// many hubs, and where these begin.
enum { LongHeader = 3 };

// Part is a part of a long list: its entries first to end-1. It is whole if it is all of the list.
struct Part {
	i64 list;
	u32 first, end;
	bool whole;
};

// Hub is a list whose parts first to end-1 are added up.
struct Hub {
	i64 list, first, end;
};

// Lists are those of a launch. With join it adds up the parts of hubs, and else all lists.
struct Lists {
	const u32 *off;
	i64 count;
	const u32 *longs; // LongHeader words; of each part its list and its number there; of each hub
					  // its list and its first part, whose others follow
	float *parts;	  // sums of the parts of hubs
	i64 join;

	MEMBER bool isLong(i64 i) const { return off[i + 1] - off[i] > LongList; }
	MEMBER i64 partCount() const { return longs[0]; }
	MEMBER i64 hubs() const { return longs[1]; }
	MEMBER Part part(i64 k) const {
		const u32 *words = longs + LongHeader + 2 * k;
		u32 begin = off[words[0]], end = off[words[0] + 1];
		u32 first = begin + words[1] * PartEntries;
		bool last = end - first <= PartEntries;
		return {words[0], first, last ? end : first + PartEntries, end - begin <= PartEntries};
	}
	MEMBER Hub hub(i64 k) const {
		const u32 *words = longs + longs[2] + 2 * k;
		u32 entries = off[words[0] + 1] - off[words[0]];
		return {words[0], words[1], words[1] + (entries + PartEntries - 1) / PartEntries};
	}
};

// join_parts is sum_lists of hubs, of whose parts the sums are known.
template <class V, class End> DEV void join_parts(Lists l, i64 cols, End end) {
	const i64 wide = Wide<V>::values, pieces = cols / wide;
	EACH(t, l.hubs() * pieces) {
		Hub h = l.hub(t / pieces);
		i64 c = t % pieces * wide;
		V sum = V();
		for (i64 part = h.first; part < h.end; part++)
			sum = sum + load<V>(l.parts + part * cols + c);
		end(h.list, c, sum);
	}
}

// by_warps calls f(part, unit, first, step) for the lists that are not hubs, and the parts of those
// that are, of which a warp has one of some units: its entries are those from first on, every
// step-th. All warps of a block have a part of a long list together: then step is not 1.
template <class F> DEV void by_warps(Lists l, i64 units, F f) {
#pragma unroll 1
	for (int longs = 0; longs < 2; longs++) {
		i64 n = (longs ? l.partCount() : l.count) * units, warp = warp_in_block();
		i64 u = longs ? block_number() : block_number() * Warps + warp;
		for (; u < n; u += longs ? blocks() : blocks() * Warps) {
			i64 i = u / units;
			Part p = longs ? l.part(i) : Part{i, l.off[i], l.off[i + 1], true};
			if (!longs && l.isLong(i)) continue;
			f(p, u, p.first + (longs ? (u32)warp : 0), longs ? Warps : 1);
		}
	}
}

// sum_lists calls end(list, column, sum) with the sums of entry(list, e, column) over each list's
// entries, for each or four of cols columns: in one launch but for hubs, and for these in another.
template <class V, class Entry, class End>
DEV void sum_lists(Lists l, i64 cols, Entry entry, End end) {
	if (l.join) return join_parts<V>(l, cols, end);
	const i64 wide = Wide<V>::values, pieces = cols / wide;
	EACH(t, l.count *pieces) {
		i64 i = t / pieces, c = t % pieces * wide;
		if (l.isLong(i)) continue;
		u32 last = l.off[i + 1];
		V sum = V();
		for (u32 e = l.off[i]; e < last; e++) sum = sum + entry(i, e, c);
		end(i, c, sum);
	}
	SHARED V sums[Warps][32];
	i64 chunks = (pieces + 31) / 32;
	EACH_BLOCK(u, l.partCount() * chunks) {
		Part p = l.part(u / chunks);
		i64 c = (u % chunks * 32 + lane()) * wide;
		V sum = V();
		if (c < cols)
			for (u32 e = p.first + warp_in_block(); e < p.end; e += Warps)
				sum = sum + entry(p.list, e, c);
		sums[warp_in_block()][lane()] = sum;
		barrier();
		if (warp_in_block() == 0 && c < cols) {
			for (int w = 1; w < Warps; w++) sum = sum + sums[w][lane()];
			if (p.whole) end(p.list, c, sum);
			else store(l.parts + u / chunks * cols + c, sum);
		}
		barrier();
	}
}
