// Link prediction: queries for the ends of edges, how they compare with entities, what is wrong with
// scores, and steps of rows. Gradients are sums in the order of rows, each in one thread.
#include "dropout.h"
#include "losses.h"
#include "numbers.h"
#include "threads.h"

// Made is how a query is made of its known end and of a form, Measured how it compares with a
// candidate, and Cost what is wrong with scores: the host has the same numbers.
enum Made { Product, Rotation, Sum, Copy };
enum Measured { Dot, Euclid, Manhattan, Modulus };
enum Cost { Softmax, Logistic, Margin, Adversarial };

// Excluded is the score of what does not count, and DistanceLeast the least distance that is used.
#define Excluded (-1e30f)
#define DistanceLeast 1e-3f
// ModulusLeast is added to the square of a modulus: where it is zero, its gradient is too.
#define ModulusLeast 1e-20f

// cosine_sine writes both of an angle: of what is left of quarters of a turn, by their series.
DEV void cosine_sine(float angle, float *cosine, float *sine) {
	f64 x = angle, quarters = x * 0.63661977236758134308;
	i64 n = (i64)(quarters + (quarters < 0 ? -0.5 : 0.5));
	f64 r = (x - (f64)n * 1.57079632673412561417) - (f64)n * 6.07710050650619224932e-11, q = r * r;
	f64 s = r * (1 + q * (-1.0 / 6 + q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880
		- q / 39916800)))));
	f64 c = 1 + q * (-0.5 + q * (1.0 / 24 + q * (-1.0 / 720 + q * (1.0 / 40320 - q / 3628800
		+ q * q / 479001600))));
	f64 swapped = n & 1 ? s : c, other = n & 1 ? c : s;
	*cosine = (float)((n + 1) & 2 ? -swapped : swapped);
	*sine = (float)(n & 2 ? -other : other);
}

// forms (count, cols), or of angles their cosines and sines (count, 2·cols)
KERNEL(link_forms)(float *forms, const float *rows, i64 count, i64 cols, i64 angles) {
	EACH(t, count *cols) {
		i64 i = t / cols, c = t % cols;
		if (angles) cosine_sine(rows[t], forms + i * 2 * cols + c, forms + i * 2 * cols + cols + c);
		else forms[t] = rows[t];
	}
}

// the gradients of rows by those of forms
KERNEL(link_forms_grad)(float *grad, const float *dForms, const float *rows, i64 count, i64 cols,
	   i64 angles) {
	EACH(t, count *cols) {
		if (!angles) {
			grad[t] = dForms[t];
			continue;
		}
		const float *d = dForms + t / cols * 2 * cols + t % cols;
		float cosine, sine;
		cosine_sine(rows[t], &cosine, &sine);
		grad[t] = cosine * d[cols] - sine * d[0];
	}
}

DEV u64 folded(u64 a, u64 b) { return high_product(a, b) ^ a * b; }

// QueryDrops says which values of queries are dropped: the function of compute/backend's Links.
struct QueryDrops {
	u64 key;
	i64 first, limit;
	float scale;

	MEMBER float of(float v, i64 query, i64 column) const {
		const u64 mul0 = 0xa0761d6478bd642full, mul1 = 0xe7037ed1a0b428dbull;
		if (!limit) return v;
		u64 part = (u64)(first + query);
		u64 sub = folded(folded(key ^ part * mul1, mul0 ^ part) ^ key, mul1);
		u64 state = sub + (u64)(column / 4 + 1) * mul0;
		u64 draw = folded(state, state ^ mul1) >> (column % 4 * 16) & 0xffff;
		return draw < (u64)limit ? 0 : v * scale;
	}
};

// queries (count, dim) of the ends, and of the forms that formOf numbers
KERNEL(link_queries)(float *queries, const float *ends, const float *forms, const u32 *formOf,
	   i64 count, i64 dim, i64 made, i64 head, const u64 *key, i64 first, i64 limit, f64 scale) {
	QueryDrops drops = {key[0], first, limit, (float)scale};
	i64 half = dim / 2, pieces = made == Rotation ? half : dim;
	EACH(t, count *pieces) {
		i64 i = t / pieces, c = t % pieces;
		const float *x = ends + i * dim, *r = forms + formOf[i] * dim;
		float *q = queries + i * dim;
		if (made == Rotation) {
			float xr = x[c], xi = x[half + c], rr = r[c], ri = head ? -r[half + c] : r[half + c];
			q[c] = drops.of(xr * rr - xi * ri, i, c);
			q[half + c] = drops.of(xr * ri + xi * rr, i, half + c);
			continue;
		}
		float v = x[c];
		if (made == Product) v *= r[c];
		if (made == Sum) v = head ? v - r[c] : v + r[c];
		q[c] = drops.of(v, i, c);
	}
}

// dEnds += the gradients of ends, and dForms = those of the form of each query, by those of queries
KERNEL(link_queries_grad)(float *dEnds, float *dForms, const float *dQueries, const float *ends,
	   const float *forms, const u32 *formOf, i64 count, i64 dim, i64 made, i64 head,
	   const u64 *key, i64 first, i64 limit, f64 scale) {
	QueryDrops drops = {key[0], first, limit, (float)scale};
	i64 half = dim / 2, pieces = made == Rotation ? half : dim;
	EACH(t, count *pieces) {
		i64 i = t / pieces, c = t % pieces;
		const float *x = ends + i * dim, *r = forms + formOf[i] * dim, *dq = dQueries + i * dim;
		float *dx = dEnds + i * dim, *dr = dForms + i * dim;
		float g = drops.of(dq[c], i, c);
		if (made == Rotation) {
			float gi = drops.of(dq[half + c], i, half + c);
			float xr = x[c], xi = x[half + c], rr = r[c], ri = head ? -r[half + c] : r[half + c];
			dx[c] += g * rr + gi * ri;
			dx[half + c] += gi * rr - g * ri;
			float di = gi * xr - g * xi;
			dr[c] = g * xr + gi * xi;
			dr[half + c] = head ? -di : di;
			continue;
		}
		dx[c] += made == Product ? g * r[c] : g;
		if (made == Product) dr[c] = g * x[c];
		if (made == Sum) dr[c] = head ? -g : g;
	}
}

// Compared compares rows of dim values: part is what column c of two rows adds, and score makes a
// score of the sum. Complex numbers have columns up to half.
struct Compared {
	i64 measure, dim;

	MEMBER i64 pieces() const { return measure == Modulus ? dim / 2 : dim; }
	MEMBER float part(const float *q, const float *x, i64 c) const {
		if (measure == Dot) return q[c] * x[c];
		float d = q[c] - x[c];
		if (measure == Euclid) return d * d;
		if (measure == Manhattan) return d < 0 ? -d : d;
		float e = q[dim / 2 + c] - x[dim / 2 + c];
		return root(d * d + e * e + ModulusLeast);
	}
	MEMBER float score(float sum) const {
		if (measure == Dot) return sum;
		if (measure != Euclid) return -sum;
		return -root(larger(sum, DistanceLeast * DistanceLeast));
	}
	// of_query and of_candidate are what value c of a row gets of the gradient g of a score.
	MEMBER float of_query(float g, float score, const float *q, const float *x, i64 c) const {
		return measure == Dot ? g * x[c] : -slope(g, score, q, x, c);
	}
	MEMBER float of_candidate(float g, float score, const float *q, const float *x, i64 c) const {
		return measure == Dot ? g * q[c] : slope(g, score, q, x, c);
	}
	MEMBER float slope(float g, float score, const float *q, const float *x, i64 c) const {
		float d = q[c] - x[c];
		if (measure == Euclid) return g / -score * d;
		if (measure == Manhattan) return d > 0 ? g : d < 0 ? -g : 0;
		i64 o = c < dim / 2 ? c + dim / 2 : c - dim / 2;
		float e = q[o] - x[o];
		return g / root(d * d + e * e + ModulusLeast) * d;
	}
};

// scores[i] = that of query i with its answer
KERNEL(link_answers)(float *scores, const float *queries, const float *answers, i64 count, i64 dim,
	   i64 measure) {
	Compared by = {measure, dim};
	EACH_WARP(i, count) {
		float sum = 0;
		for (i64 c = lane(); c < by.pieces(); c += 32)
			sum += by.part(queries + i * dim, answers + i * dim, c);
		sum = warp_sum(sum);
		if (lane() == 0) scores[i] = by.score(sum);
	}
}

// dQueries += and dAnswers = their gradients
KERNEL(link_answers_grad)(float *dQueries, float *dAnswers, const float *g, const float *scores,
	   const float *queries, const float *answers, i64 count, i64 dim, i64 measure) {
	Compared by = {measure, dim};
	EACH(t, count *dim) {
		i64 i = t / dim, c = t % dim;
		const float *q = queries + i * dim, *x = answers + i * dim;
		dQueries[t] += by.of_query(g[i], scores[i], q, x, c);
		dAnswers[t] = by.of_candidate(g[i], scores[i], q, x, c);
	}
}

// Together is how many queries a thread compares with a candidate, which it reads once.
enum { Together = 4 };

// scores (rows, width): of queries with those of a block of candidates that their share of chunk
// queries has. The sum of a score is in the order of columns, whatever else is computed.
KERNEL(link_scores)(float *scores, const float *queries, const float *candidates, i64 rows,
	   i64 chunk, i64 width, i64 dim, i64 measure) {
	Compared by = {measure, dim};
	i64 groups = (chunk + Together - 1) / Together, shares = (rows + chunk - 1) / chunk;
	EACH(t, shares *groups *width) {
		i64 j = t % width, group = t / width % groups, share = t / width / groups;
		i64 first = share * chunk + group * Together, end = share * chunk + chunk;
		if (end > rows) end = rows;
		const float *x = candidates + (share * width + j) * dim;
		float sums[Together] = {0, 0, 0, 0};
		if (end - first >= Together) {
			const float *q = queries + first * dim;
			for (i64 c = 0; c < by.pieces(); c++)
				for (int k = 0; k < Together; k++) sums[k] += by.part(q + k * dim, x, c);
		} else {
			for (i64 k = 0; k < end - first; k++)
				for (i64 c = 0; c < by.pieces(); c++)
					sums[k] += by.part(queries + (first + k) * dim, x, c);
		}
		for (i64 k = 0; k < Together && first + k < end; k++)
			scores[(first + k) * width + j] = by.score(sums[k]);
	}
}

// dQueries = the sums over candidates of their gradients
KERNEL(link_scores_grad_queries)(float *dQueries, const float *g, const float *scores,
	   const float *queries, const float *candidates, i64 rows, i64 chunk, i64 width, i64 dim,
	   i64 measure) {
	Compared by = {measure, dim};
	EACH(t, rows *dim) {
		i64 i = t / dim, c = t % dim;
		const float *x = candidates + i / chunk * width * dim;
		float sum = 0;
		for (i64 j = 0; j < width; j++)
			sum += by.of_query(g[i * width + j], scores[i * width + j], queries + i * dim,
							   x + j * dim, c);
		dQueries[t] = sum;
	}
}

// dCandidates = the sums over the queries of their share
KERNEL(link_scores_grad_candidates)(float *dCandidates, const float *g, const float *scores,
	   const float *queries, const float *candidates, i64 rows, i64 chunk, i64 width, i64 dim,
	   i64 measure) {
	Compared by = {measure, dim};
	i64 shares = (rows + chunk - 1) / chunk;
	EACH(t, shares *width *dim) {
		i64 c = t % dim, j = t / dim % width, share = t / dim / width;
		i64 end = share * chunk + chunk < rows ? share * chunk + chunk : rows;
		float sum = 0;
		for (i64 i = share * chunk; i < end; i++)
			sum += by.of_candidate(g[i * width + j], scores[i * width + j], queries + i * dim,
								   candidates + t / dim * dim, c);
		dCandidates[t] = sum;
	}
}

// scores[at[i]] = Excluded
KERNEL(link_exclude)(float *scores, const u32 *at, i64 count) {
	EACH(i, count) scores[at[i]] = Excluded;
}

// Softplus is the logarithm of one and the power of e to x, and its slope.
struct Softplus {
	float value, slope;
};

DEV Softplus softplus(float x) {
	float e = exponential(x < 0 ? x : -x);
	return {larger(x, 0) + logarithm_of_one_and(e), (x < 0 ? e : 1.0f) / (1 + e)};
}

// The losses of rows of scores of negatives, and of own, those of the answers, each times weight; a
// part for each row. grad may be scores.
KERNEL(link_loss)(float *grad, float *gOwn, f64 *parts, const float *scores, const float *own,
	   i64 rows, i64 cols, f64 weight, i64 cost, f64 margin, f64 temperature) {
	float w = (float)weight, share = w / (float)cols, edge = (float)margin;
	EACH_WARP(i, rows) {
		const float *x = scores + i * cols;
		float *g = grad + i * cols;
		float pos = own[i], largest = -__builtin_inff(), sum = 0, loss = 0, gPos = 0;
		if (cost == Softmax || cost == Adversarial) {
			for (i64 c = lane(); c < cols; c += 32) {
				float v = cost == Softmax ? x[c] : larger(Excluded, (float)temperature * x[c]);
				largest = larger(v, largest);
			}
			largest = warp_max(largest);
			if (cost == Softmax) largest = larger(largest, pos);
			for (i64 c = lane(); c < cols; c += 32) {
				float v = cost == Softmax ? x[c] : larger(Excluded, (float)temperature * x[c]);
				sum += softened(v - largest);
			}
			sum = warp_sum(sum);
		}
		float mine = cost == Softmax ? exponential(pos - largest) : 0;
		sum += mine;
		for (i64 c = lane(); c < cols; c += 32) {
			float v = x[c];
			Softplus p;
			switch (cost) {
			case Softmax:
				g[c] = softened(v - largest) * (w / sum);
				break;
			case Logistic:
				p = softplus(v);
				loss += p.value;
				g[c] = p.slope * share;
				break;
			case Margin:
				v += edge - pos;
				loss += v > 0 ? v : 0;
				g[c] = v > 0 ? share : 0;
				gPos -= g[c];
				break;
			default:
				p = softplus(edge + v);
				float of = softened(larger(Excluded, (float)temperature * v) - largest) / sum;
				loss += of * p.value;
				g[c] = w * of * p.slope;
			}
		}
		loss = warp_sum(loss);
		gPos = warp_sum(gPos);
		f64 all = 0;
		Softplus p = softplus(cost == Logistic ? -pos : -edge - pos);
		switch (cost) {
		case Softmax:
			all = (f64)w * ((f64)logarithm(sum) - (f64)(pos - largest));
			gPos = w * (mine / sum - 1);
			break;
		case Logistic:
			all = (f64)w * p.value + (f64)share * loss;
			gPos = -w * p.slope;
			break;
		case Margin:
			all = (f64)share * loss;
			break;
		default:
			all = (f64)w * ((f64)p.value + loss);
			gPos = -w * p.slope;
		}
		if (lane() == 0) {
			for (int k = 0; k < Kept; k++) parts[i * Kept + k] = 0;
			parts[i * Kept] = all;
			gOwn[i] = gPos;
		}
	}
}

// The losses of rows of scores of all candidates, each times weight, of which those in its list are
// the answers of each; a part for each row. grad may be scores. A lane has the columns that leave
// its number when divided by 32, whatever it does with them.
KERNEL(link_loss_all)(float *grad, f64 *parts, const float *scores, const u32 *off,
	   const u32 *answers, i64 rows, i64 cols, f64 weight, i64 cost) {
	EACH_WARP(i, rows) {
		const float *x = scores + i * cols;
		float *g = grad + i * cols;
		i64 from = off[i], end = off[i + 1];
		float count = (float)(end - from), w = (float)weight, share = w * count / (float)cols;
		float largest = -__builtin_inff(), sum = 0, loss = 0, own = 0, less = w;
		for (i64 k = from; k < end; k++)
			if (answers[k] % 32 == (u32)lane()) own += x[answers[k]];
		own = warp_sum(own);
		if (cost == Softmax) {
			for (i64 c = lane(); c < cols; c += 32) largest = larger(x[c], largest);
			largest = warp_max(largest);
			for (i64 c = lane(); c < cols; c += 32) sum += softened(x[c] - largest);
			sum = warp_sum(sum);
			for (i64 c = lane(); c < cols; c += 32)
				g[c] = softened(x[c] - largest) * (w * count / sum);
		} else {
			less = share;
			for (i64 c = lane(); c < cols; c += 32) {
				Softplus p = softplus(x[c]);
				loss += p.value;
				g[c] = p.slope * share;
			}
			loss = warp_sum(loss);
		}
		for (i64 k = from; k < end; k++)
			if (answers[k] % 32 == (u32)lane()) g[answers[k]] -= less;
		if (lane() == 0) {
			for (int k = 0; k < Kept; k++) parts[i * Kept + k] = 0;
			parts[i * Kept] = cost == Softmax
				? (f64)w * ((f64)count * ((f64)logarithm(sum) + largest) - own)
				: (f64)share * ((f64)loss - own);
		}
	}
}

// counts (targets, 4): the candidates above each and equal to it, and the known ones of both. of has
// the query of each, whose row of scores it is compared with, and its own column.
KERNEL(link_ranks)(float *counts, const float *scores, const float *own, const u32 *of,
	   const u32 *knownOff, const u32 *known, i64 targets, i64 width, i64 first) {
	EACH_WARP(i, targets) {
		const float *x = scores + of[2 * i] * width;
		u32 place = of[2 * i + 1], end = knownOff[of[2 * i] + 1];
		float score = own[i], above = 0, equal = 0, knownAbove = 0, knownEqual = 0;
		for (i64 c = first + lane(); c < width; c += 32) {
			if (c == (i64)place) continue;
			above += x[c] > score;
			equal += x[c] == score;
		}
		for (i64 k = knownOff[of[2 * i]] + lane(); k < end; k += 32) {
			if (known[k] == place) continue;
			knownAbove += x[known[k]] > score;
			knownEqual += x[known[k]] == score;
		}
		float *to = counts + 4 * i;
		above = warp_sum(above), equal = warp_sum(equal);
		knownAbove = warp_sum(knownAbove), knownEqual = warp_sum(knownEqual);
		if (lane() == 0)
			to[0] = above, to[1] = equal, to[2] = knownAbove, to[3] = knownEqual;
	}
}

// grad += the gradients of a regularizer of the rows at[i], or i, times weights: of squares, of
// cubes, or of cubes of moduli
KERNEL(link_regularize)(float *grad, const float *rows, const u32 *at, const float *weights,
	   i64 count, i64 dim, i64 kind) {
	EACH(t, count *dim) {
		i64 i = t / dim, c = t % dim, o = c < dim / 2 ? c + dim / 2 : c - dim / 2;
		const float *x = rows + (at ? (i64)at[i] : i) * dim;
		float v = x[c], w = weights[i];
		if (kind == 0) grad[t] += 2 * w * v;
		if (kind == 1) grad[t] += 3 * w * (v < 0 ? -v : v) * v;
		if (kind == 2) grad[t] += 3 * w * root(v * v + x[o] * x[o]) * v;
	}
}

// a step of Adagrad for the rows at[i] of w and s
KERNEL(adagrad_rows)(float *w, float *s, const float *g, const u32 *at, i64 count, i64 cols,
	   f64 eps, const f64 *rate) {
	EACH(t, count *cols) {
		i64 to = at[t / cols] * cols + t % cols;
		float sum = s[to] += g[t] * g[t];
		w[to] -= (float)rate[0] * g[t] / (root(sum) + (float)eps);
	}
}

// one of Adam: see adam
KERNEL(adam_rows)(float *w, float *m, float *v, const float *g, const u32 *at, i64 count, i64 cols,
	   f64 beta1, f64 rest1, f64 beta2, f64 rest2, f64 eps, const f64 *step) {
	f64 rootScale = step[0], rate = step[2];
	EACH(t, count *cols) {
		i64 to = at[t / cols] * cols + t % cols;
		float first = m[to] = (float)beta1 * m[to] + (float)rest1 * g[t];
		float second = v[to] = (float)beta2 * v[to] + (float)rest2 * (g[t] * g[t]);
		w[to] -= (float)rate * first / (root(second) * (float)rootScale + (float)eps);
	}
}
