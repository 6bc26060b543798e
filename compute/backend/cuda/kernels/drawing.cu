// Draws of neighbors: seeds in, a sample in the DENSE encoding out, bit for bit what package sample
// draws. Which positions of a list are drawn is a function of the hop's key and the node, by Floyd's
// algorithm. Nodes are numbered in the order in which they are met: a table has for each node the
// least number of an entry that names it, which does not depend on which thread is first, and sums
// over the entries that name a node first give its index.
#include "dropout.h"
#include "threads.h"

// Direction is the lists of a direction: that of node v is ids[first(v)] to ids[first(v+1)-1].
struct Direction {
	const void *offsets; // of 64 bits if wide, else of 32
	const u32 *ids;
	i64 wide;

	MEMBER u64 first(u64 v) const {
		return wide ? ((const u64 *)offsets)[v] : ((const u32 *)offsets)[v];
	}
	MEMBER u64 degree(u64 v) const { return first(v + 1) - first(v); }
};

// State is words that tell the kernels of a batch, and then the host, how far it is: whether it
// failed, since it is larger than its bounds or a seed stands twice, and where the nodes and the
// entries of each hop begin. The host has the same numbers.
enum { HopsMost = 64, Failed = 0, NodeStarts = 1, EdgeStarts = NodeStarts + HopsMost + 2 };

// TileItems is how many values a block adds up at a time.
enum { TileItems = 4 * Threads };

// ProbesMost bounds the places of the table that are looked at for a node: a table that is half full
// has no run of so many.
enum { ProbesMost = 1024 };

// Drawing is what the kernels of a batch work on, in words of 8 bytes. Nodes are in the order in
// which they are met. places has the positions of entries in their lists, and then their places in
// the table. An entry of the table is a node and a number, below all others of the node.
struct Drawing {
	Direction sides[2];
	i64 directions, nodesMost, edgesMost, slots, shift;
	u64 *state;
	u32 *nodes, *degrees, *offsets, *nbrs, *places;
	u64 *table, *tiles;
	u32 *seeds;
	// The sample: see dense.Lists. allDegrees may be null.
	u32 *nodeIDs, *nbrOffsets, *denseNbrs, *reprMap, *allDegrees;

	MEMBER bool failed() const { return state[Failed] != 0; }
	MEMBER i64 nodeStart(i64 hop) const { return state[NodeStarts + hop]; }
	MEMBER i64 edgeStart(i64 hop) const { return state[EdgeStarts + hop]; }
	MEMBER i64 front(i64 hop) const { return nodeStart(hop + 1) - nodeStart(hop); }
	MEMBER i64 edges(i64 hop) const { return edgeStart(hop + 1) - edgeStart(hop); }
	MEMBER u64 degree(u64 v) const {
		u64 d = sides[0].degree(v);
		return directions > 1 ? d + sides[1].degree(v) : d;
	}
	// neighbor is the entry at a position of a node's list, the second direction's behind the
	// first's.
	MEMBER u32 neighbor(u64 v, u64 position) const {
		u64 first = sides[0].first(v), d = sides[0].first(v + 1) - first;
		if (position < d) return sides[0].ids[first + position];
		return sides[1].ids[sides[1].first(v) + position - d];
	}
	// meet enters a node with a number, and returns its place. isNew is whether it was not there.
	MEMBER u32 meet(u32 node, u32 number, bool *isNew) const {
		u64 mine = (u64)node << 32 | number;
		u64 h = (u64)node * 0x9e3779b97f4a7c15ull >> shift;
		for (i64 i = 0; i < ProbesMost; i++, h++) {
			u64 *at = table + (h & (slots - 1));
			u64 was = compare_and_swap(at, ~0ull, mine);
			if ((*isNew = was == ~0ull)) return at - table;
			if (was >> 32 == node) {
				if (was > mine) atomic_min(at, mine);
				return at - table;
			}
		}
		state[Failed] = 1;
		return 0;
	}
	// isFirst is whether entry e of a hop names its node first. The number of a node is its index
	// once it has one, which is no more than that of the entry that it had before.
	MEMBER bool isFirst(i64 hop, i64 e) const {
		return (u32)table[places[edgeStart(hop) + e]] == nodeStart(hop + 1) + e;
	}
};

// Stream gives the draws of a key, 32 bits at a time: rng.Stream, and the drawer of sample/draw.
struct Stream {
	u64 state, bits;
	int halves;

	MEMBER u32 next() {
		if (halves == 0) {
			state += 0xa0761d6478bd642full;
			bits = mix(state, state ^ 0xe7037ed1a0b428dbull);
			halves = 2;
		}
		u32 half = bits;
		bits >>= 32;
		halves--;
		return half;
	}
	// below is a uniform draw below n.
	MEMBER u32 below(u32 n) {
		u64 m = (u64)next() * n;
		if ((u32)m < n)
			for (u32 least = (0 - n) % n; (u32)m < least;) m = (u64)next() * n;
		return m >> 32;
	}
};

// sub_key is rng.Sub.
DEV u64 sub_key(u64 key, u64 part) {
	const u64 mul0 = 0xa0761d6478bd642full, mul1 = 0xe7037ed1a0b428dbull;
	return mix(mix(key ^ part * mul1, mul0 ^ part) ^ key, mul1);
}

// block_prefix is the sum of the values of the threads before, and total that of all.
DEV u64 block_prefix(u64 v, u64 *at, u64 *total) {
	i64 t = thread_in_block();
	at[t] = v;
	barrier();
	for (i64 step = 1; step < Threads; step *= 2) {
		u64 before = t >= step ? at[t - step] : 0;
		barrier();
		at[t] += before;
		barrier();
	}
	u64 sum = at[t];
	*total = at[Threads - 1];
	barrier();
	return sum - v;
}

// sum_tiles writes the sums of the tiles of n values.
template <class Value> DEV void sum_tiles(u64 *tiles, i64 n, Value value) {
	SHARED u64 at[Threads];
	EACH_BLOCK(tile, (n + TileItems - 1) / TileItems) {
		u64 sum = 0;
		for (int k = 0; k < TileItems / Threads; k++) {
			i64 i = tile * TileItems + k * Threads + thread_in_block();
			if (i < n) sum += value(i);
		}
		sum = block_sum(sum, at);
		if (thread_in_block() == 0) tiles[tile] = sum;
	}
}

// each_prefix calls put(i, value, sum of the values before), where tiles has the sums before each
// tile.
template <class Value, class Put>
DEV void each_prefix(const u64 *tiles, i64 n, Value value, Put put) {
	SHARED u64 at[Threads];
	EACH_BLOCK(tile, (n + TileItems - 1) / TileItems) {
		u64 before = tiles[tile], total;
		for (int k = 0; k < TileItems / Threads; k++) {
			i64 i = tile * TileItems + k * Threads + thread_in_block();
			u64 v = i < n ? value(i) : 0;
			u64 sum = block_prefix(v, at, &total);
			if (i < n) put(i, v, before + sum);
			before += total;
		}
	}
}

// begin a batch with its seeds; all words of the table are ones, and those of the state zeros
KERNEL(draw_begin)(const Drawing *d, i64 seeds) {
	EACH(i, seeds) {
		bool isNew;
		d->nodes[i] = d->seeds[i];
		d->meet(d->seeds[i], i, &isNew);
		if (!isNew) d->state[Failed] = 1;
		if (i == 0) {
			d->state[NodeStarts + 1] = seeds;
			d->offsets[0] = 0;
		}
	}
}

// the lengths of the lists of a hop's nodes, and sums of how many entries are drawn of each
KERNEL(draw_degrees)(const Drawing *d, i64 hop, i64 fanout) {
	if (d->failed()) return;
	const i64 a = d->nodeStart(hop);
	sum_tiles(d->tiles, d->front(hop), [=](i64 i) {
		u64 degree = d->degree(d->nodes[a + i]);
		d->degrees[a + i] = degree;
		if (degree >> 32) return degree; // more than any bound: the batch fails
		return degree < (u64)fanout ? degree : fanout;
	});
}

// turns the sums of tiles into the sums before each, in one block; with nodes they count the nodes
// that a hop found, else the entries that it draws
KERNEL(draw_tiles)(const Drawing *d, i64 hop, i64 nodes) {
	if (d->failed()) return;
	SHARED u64 at[Threads];
	i64 n = nodes ? d->edges(hop) : d->front(hop);
	n = (n + TileItems - 1) / TileItems;
	u64 before = 0, total;
	for (i64 first = 0; first < n; first += Threads) {
		i64 i = first + thread_in_block();
		u64 sum = block_prefix(i < n ? d->tiles[i] : 0, at, &total);
		if (i < n) d->tiles[i] = before + sum;
		before += total;
	}
	barrier(); // all have read the state
	if (thread_in_block() != 0) return;
	u64 *end = d->state + (nodes ? NodeStarts + hop + 2 : EdgeStarts + hop + 1);
	*end = end[-1] + before;
	if (*end > (u64)(nodes ? d->nodesMost : d->edgesMost)) d->state[Failed] = 1;
}

// where the entries of each of a hop's nodes begin
KERNEL(draw_offsets)(const Drawing *d, i64 hop, i64 fanout) {
	if (d->failed()) return;
	const i64 a = d->nodeStart(hop), first = d->edgeStart(hop);
	each_prefix(d->tiles, d->front(hop),
		[=](i64 i) {
			u64 degree = d->degrees[a + i];
			return degree < (u64)fanout ? degree : fanout;
		},
		[=](i64 i, u64 take, u64 before) { d->offsets[a + i + 1] = first + before + take; });
}

// the positions that are drawn of each list that is not taken whole; each bit of seen stands for the
// positions that have its last 6 bits
KERNEL(draw_choose)(const Drawing *d, u64 key, i64 hop) {
	if (d->failed()) return;
	const i64 a = d->nodeStart(hop);
	EACH(i, d->front(hop)) {
		u32 degree = d->degrees[a + i], first = d->offsets[a + i];
		u32 take = d->offsets[a + i + 1] - first, limit = degree - take;
		if (take == degree) continue;
		u32 *chosen = d->places + first;
		Stream draws = {sub_key(key, d->nodes[a + i]), 0, 0};
		u64 seen = 0;
		for (u32 j = 0; j < take; j++) {
			limit++;
			u32 p = draws.below(limit);
			if (seen >> (p & 63) & 1)
				for (u32 q = 0; q < j; q++)
					if (chosen[q] == p) {
						p = limit - 1;
						break;
					}
			seen |= 1ull << (p & 63);
			chosen[j] = p;
		}
	}
}

// the neighbors at these positions, entered in the table
KERNEL(draw_neighbors)(const Drawing *d, i64 hop) {
	if (d->failed()) return;
	const i64 first = d->edgeStart(hop), known = d->nodeStart(hop + 1);
	EACH(k, d->edges(hop)) {
		i64 e = first + k, i = d->nodeStart(hop), end = known;
		while (end - i > 1) { // the last list that begins at e or before
			i64 middle = (i + end) / 2;
			if (d->offsets[middle] <= e) i = middle;
			else end = middle;
		}
		u32 begin = d->offsets[i];
		bool whole = d->offsets[i + 1] - begin == d->degrees[i], isNew;
		u32 v = d->neighbor(d->nodes[i], whole ? e - begin : d->places[e]);
		d->nbrs[e] = v;
		d->places[e] = d->meet(v, known + k, &isNew);
	}
}

// sums of the entries that name a node first
KERNEL(draw_firsts)(const Drawing *d, i64 hop) {
	if (d->failed()) return;
	sum_tiles(d->tiles, d->edges(hop), [=](i64 e) { return (u64)d->isFirst(hop, e); });
}

// the nodes that a hop found, and their indexes in the table
KERNEL(draw_number)(const Drawing *d, i64 hop) {
	if (d->failed()) return;
	const i64 first = d->edgeStart(hop), known = d->nodeStart(hop + 1);
	each_prefix(d->tiles, d->edges(hop), [=](i64 e) { return (u64)d->isFirst(hop, e); },
		[=](i64 e, u64 isFirst, u64 before) {
			if (!isFirst) return;
			u32 v = d->nbrs[first + e];
			d->nodes[known + before] = v;
			d->table[d->places[first + e]] = (u64)v << 32 | (u64)(known + before);
		});
}

// the sample of all hops, the outermost nodes first
KERNEL(draw_dense)(const Drawing *d, i64 hops) {
	if (d->failed()) return;
	const i64 nodes = d->nodeStart(hops + 1), inner = d->nodeStart(hops);
	const i64 edges = d->edgeStart(hops);
	auto placed = [=](i64 i) { // behind the nodes of later hops
		i64 hop = 0;
		while (i >= d->nodeStart(hop + 1)) hop++;
		return i - d->nodeStart(hop) + nodes - d->nodeStart(hop + 1);
	};
	EACH(i, nodes) {
		i64 to = placed(i);
		d->nodeIDs[to] = d->nodes[i];
		if (d->allDegrees) d->allDegrees[to] = d->degree(d->nodes[i]);
	}
	EACH(i, inner) {
		i64 hop = 0;
		while (i >= d->nodeStart(hop + 1)) hop++;
		d->nbrOffsets[i - d->nodeStart(hop) + inner - d->nodeStart(hop + 1)] =
			d->offsets[i] - d->edgeStart(hop) + edges - d->edgeStart(hop + 1);
		if (i == 0) d->nbrOffsets[inner] = edges;
	}
	EACH(e, edges) {
		i64 hop = 0;
		while (e >= d->edgeStart(hop + 1)) hop++;
		i64 to = e - d->edgeStart(hop) + edges - d->edgeStart(hop + 1);
		d->denseNbrs[to] = d->nbrs[e];
		d->reprMap[to] = placed((u32)d->table[d->places[e]]);
	}
}
