package setting

import (
	"slices"

	"gdb/blockdev"
)

// Caching is how a training of nodes reads what does not fit in memory.
type Caching struct {
	// Cache is the policy for features that do not fit: auto, none, static, sieve or CacheBelady.
	Cache string `json:"cache"`
	// Superbatch is how many batches cache belady samples ahead at most; 0 as many as a quarter of
	// the free disk has room for, 64 GiB at most, and no more than up to the next evaluation.
	Superbatch int `json:"superbatch"`
	// MacroBatch is of how many batches the seeds are drawn together, which are sliced from the
	// sample then: see bulk.MacroBatches. 0 and 1 draw each batch by itself.
	MacroBatch int `json:"macro_batch,omitempty"`
	// FeatureCache is the size of that cache in bytes; 0 takes what is left of Memory.
	FeatureCache int64 `json:"feature_cache"`
	// NeighborCache keeps neighbor lists of a paged topology, in bytes; 0 is none, NeighborAuto
	// what the plan finds best.
	NeighborCache int64 `json:"neighbor_cache"`
	// Topology is auto, paged, or resident: in any form, or in that of the name plain, packed or
	// compact.
	Topology string `json:"topology"`
	// IO is how files are read; the device was opened with it, it is kept for the record.
	IO string `json:"io"`
	// Remeasure measures the device anew when the run is planned, though the catalog has a
	// profile of it.
	Remeasure bool `json:"-" setting:"remeasure"`
	// Profiles is a directory of the user, where what was measured of devices is kept for a day for
	// all stores; "" measures the device for each store.
	Profiles string `json:"-"`
	// NeighborsAhead plans as if neighbor caches were made before the run, whatever that takes.
	NeighborsAhead bool `json:"-"`
}

// CacheBelady is the policy that needs to know the batches to come: it trains on superbatches.
const CacheBelady = "belady"

// CacheSIEVE is the policy of the caches that learn from the batches which rows to keep.
const CacheSIEVE = "sieve"

// formerCaches lists the policies that trainings had once beside CacheSIEVE: runs that began with
// them go on with that.
var formerCaches = []string{"lru", "clock", "s3fifo"}

// RenewCache replaces a policy of an old run that trainings no longer have. That changes what is
// read, and no result.
func (c *Caching) RenewCache() {
	if slices.Contains(formerCaches, c.Cache) {
		c.Cache = CacheSIEVE
	}
}

// CheckCache refuses a word that is no Caching.Cache, and says what to use.
func CheckCache(word string) error { return Find("cache").checkWord(word, OfNodes) }

// NeighborAuto as Caching.NeighborCache lets the plan choose the size.
const NeighborAuto = -1

// ioNames lists the values of Caching.IO.
func ioNames() (names []string) {
	for _, b := range blockdev.Backends() {
		names = append(names, string(b))
	}
	return names
}

var cachingRows = []*Row{
	{Name: "cache", For: OfNodes, Free: OfNodes, NotIn: BenchTrain, Default: "auto",
		Choices: []string{"auto", "none", "static", CacheSIEVE, CacheBelady}, Gone: formerCaches,
		Instead: "trainings keep rows by static, sieve or belady; sieve is hit as often, and gdb " +
			"bench cache compares the others", Group: GroupMemory,
		Help: "policy of the cache of features: {choices}"},
	{Name: "superbatch", For: OfNodes, Free: OfNodes, Type: countOrAuto, Default: "auto",
		Check: atLeast(0), Group: GroupMemory, Help: "batches that --cache belady samples ahead; " +
			"auto: up to the next evaluation"},
	{Name: "macro-batch", For: OfNodes, Free: OfNodes, Check: atLeast(0), Group: GroupInputs,
		Help: "draw the neighbors of so many batches at once, and use draws again within them"},
	{Name: "feature-cache", For: OfNodes, Free: OfNodes, Type: sizeOrRest, Group: GroupMemory,
		Help: "size of the cache of features (default: what --memory leaves)"},
	{Name: "device-cache", For: OfNodes, Free: OfNodes, Type: sizeOrAuto, Default: "auto",
		Group: GroupPlace,
		Help: "size of the cache of features in the memory of --backend cuda's " +
			"device; auto: what steps leave of that, 0: none"},
	{Name: "neighbor-cache", For: OfNodes, Free: OfNodes, Type: sizeOrAuto, Default: "auto",
		Group: GroupMemory, Help: "size of the cache of neighbor lists, where the topology is " +
			"paged; auto: as the plan finds best, 0: none"},
	{Name: "topology", For: OfNodes, Free: OfNodes, Default: "auto",
		Choices: []string{"auto", "resident", "plain", "packed", "compact", "paged"},
		Group:   GroupMemory, Help: "where neighbor lists are read from: {choices}"},
	{Name: "io", For: OfBoth, Free: OfBoth, Default: "auto", Choices: ioNames(), Any: true,
		Group: GroupMemory, Help: "how files are read: {choices}"},
	{Name: "remeasure", For: OfNodes, Free: OfNodes, NotIn: everywhere &^ Plan,
		Help: "measure the device anew"},
}
