// Package draw chooses which neighbors are sampled, and numbers nodes as they are met.
//
// Choose takes entries of one list: uniformly, without replacement.
//
// A LayerDrawer draws the neighbors of a whole frontier together, and not those of each node apart,
// so that a hop brings about as many nodes as its layer size says, however many there are before
// it. Which are likely is that of LADIES (Zou and others, "Layer-Dependent Importance Sampling for
// Training Deep and Large Graph Convolutional Networks"): the mass of a candidate is the sum of
// (w/s)² over the entries that it has in lists of the frontier, w being the weight of an entry (1
// without weights) and s the sum of those of its list. They are drawn as in PLADIES (Balin and
// Catalyurek, "Layer-Neighbor Sampling"): each by itself, u with the probability
// p(u) = min(1, c·mass(u)), with the c at which these add up to the layer size. So what is drawn
// follows from the key of the hop, the node and the lists alone. All entries of a drawn node count
// w/p(u) times: the sum of that times rows is an unbiased estimate of the sum over whole lists
// (Horvitz and Thompson).
package draw
