// Package draw chooses which neighbors are sampled, and numbers nodes as they are met.
//
// Choose takes entries of one list: uniformly, without replacement.
//
// A LayerDrawer draws the neighbors of a whole frontier together, not node by node, so that a hop
// adds about as many nodes as its layer size says, however large the frontier is. Probabilities are
// those of LADIES (Zou and others, "Layer-Dependent Importance Sampling for Training Deep and Large
// Graph Convolutional Networks"): the mass of a candidate is the sum of (w/s)² over its entries in
// lists of the frontier, where w is the weight of an entry (1 without weights) and s the sum of the
// weights of its list. Candidates are drawn as in PLADIES (Balin and Catalyurek, "Layer-Neighbor
// Sampling"): each independently, u with the probability p(u) = min(1, c·mass(u)), with the c for
// which these add up to the layer size. So the draw depends only on the key of the hop, the node
// and the lists. Every entry of a drawn node counts w/p(u) times, which makes the weighted sum of
// rows an unbiased estimate of the sum over whole lists (Horvitz and Thompson).
package draw
