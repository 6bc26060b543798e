package plan

// Work is what a stage takes for a batch, or for a row: the seconds that pass when it has the
// machine to itself, and the core time, in seconds, that it uses meanwhile.
type Work struct {
	Seconds float64 `json:"s"`
	CPU     float64 `json:"cpu_s"`
}

// Plus returns the work of doing w and then o.
func (w Work) Plus(o Work) Work { return Work{w.Seconds + o.Seconds, w.CPU + o.CPU} }

// Times returns the work of doing w n times.
func (w Work) Times(n float64) Work { return Work{n * w.Seconds, n * w.CPU} }

// Beside returns the work of doing both at once, each with cores of its own.
func (w Work) Beside(o Work) Work { return Work{max(w.Seconds, o.Seconds), w.CPU + o.CPU} }

// Demand returns how many cores the work keeps busy on average.
func (w Work) Demand() float64 {
	if w.Seconds <= 0 {
		return 0
	}
	return w.CPU / w.Seconds
}

// slowdown returns how many times as long the work takes when cores compute for it slower times
// slower. The time it waits for a device does not change.
func (w Work) slowdown(slower float64) float64 { return 1 + min(1, w.Demand())*(slower-1) }

// shared returns when each of the works ends if they begin together and share the cores. While they
// need more cores than there are, all are slowed by the same factor.
func shared(cores float64, works ...Work) []float64 {
	ends, left := make([]float64, len(works)), make([]float64, len(works))
	for i, w := range works {
		if w.Seconds > 0 {
			left[i] = 1
		}
	}
	for now := 0.0; ; {
		var active []Work
		for i, w := range works {
			if left[i] > 0 {
				active = append(active, w)
			}
		}
		if len(active) == 0 {
			return ends
		}
		slower := slowdown(cores, active)
		next, step := -1, 0.0 // the one that ends first
		for i, w := range works {
			took := left[i] * w.Seconds * w.slowdown(slower)
			if left[i] > 0 && (next < 0 || took < step) {
				next, step = i, took
			}
		}
		now += step
		left[next], ends[next] = 0, now
		for i, w := range works {
			if left[i] == 0 {
				continue
			}
			const rounding = 1e-9
			if left[i] -= step / (w.Seconds * w.slowdown(slower)); left[i] < rounding {
				left[i], ends[i] = 0, now
			}
		}
	}
}

// slowdown returns the factor by which cores have to compute slower for each of the works, so that
// together they keep no more cores busy than there are.
func slowdown(cores float64, works []Work) float64 {
	over := func(slower float64) bool {
		sum := 0.0
		for _, w := range works {
			sum += w.Demand() / w.slowdown(slower)
		}
		return sum > cores
	}
	low, high := 1.0, 1.0
	for over(high) && high < 1e6 {
		low, high = high, 2*high
	}
	for high-low > 1e-6*high {
		if mid := (low + high) / 2; over(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Price is what reading lists costs a batch. Bytes are read, Wait is the time spent waiting for
// them, and CPU the core time that goes into reading; Own is the core time of sampling itself.
// Times are seconds.
type Price struct{ Bytes, Wait, CPU, Own float64 }

// work returns the price as Work: reading and sampling follow each other, shared by a number of
// workers that sample different batches.
func (p Price) work(workers float64) Work {
	return Work{(p.Wait + p.Own) / workers, p.CPU + p.Own}
}

// PagedPrice is what lists cost with a block cache of Blocks bytes.
type PagedPrice struct {
	Blocks int64
	Price
}

// Profile is what reading rows and computing cost on this machine. It is measured once for each
// device, way of reading and size of rows, and kept in the store's catalog. Times are seconds.
type Profile struct {
	RandomReads float64 `json:"random_reads_per_s"` // of RowBytes
	RowBytes    int     `json:"row_read_bytes"`     // bytes that a random read of one row reads
	Sequential  float64 `json:"sequential_bytes_per_s"`
	// A batch of reads takes ReadSeconds for each read and ByteSeconds for each byte, with
	// verifying and copying. Of this time the CPU works ReadCPU and ByteCPU.
	ReadSeconds float64 `json:"read_s"`
	ByteSeconds float64 `json:"byte_s"`
	ReadCPU     float64 `json:"read_cpu_s"`
	ByteCPU     float64 `json:"byte_cpu_s"`
	// Write is the cost of writing a byte of a runtime file. Where that could not be measured it is
	// the cost of reading one in large pieces, and Unwritten says why.
	Write     Work    `json:"write_byte"`
	Unwritten string  `json:"unwritten,omitempty"`
	GFLOPS    float64 `json:"gflops"` // of matrix products, all threads
	Cores     float64 `json:"cores"`  // cores that the process gets

	// Copy is the cost of copying a row from anywhere in memory, Hit of finding one in a cache and
	// copying it, and Miss of a cache's work, besides reading, for a row that it lacks. Decide is
	// the cost of planning one access of a superbatch.
	Copy   Work `json:"copy_row"`
	Hit    Work `json:"hit_row"`
	Miss   Work `json:"miss_row"`
	Decide Work `json:"plan_access"`

	// Timed holds the measured steps and samplings of a batch, by their settings. They are kept so
	// that the same settings get the same plan.
	Timed map[string]Work `json:"timed,omitempty"`
	// Tried holds what sampling reads with caches of lists, by settings and sizes.
	Tried map[string]ListReads `json:"tried,omitempty"`

	Kept string `json:"kept,omitempty"` // why the profile could not be kept in the catalog
}

// Reading returns what a number of reads cost that read bytes together.
func (p *Profile) Reading(reads, bytes float64) Price {
	return Price{Bytes: bytes, Wait: reads*p.ReadSeconds + bytes*p.ByteSeconds,
		CPU: reads*p.ReadCPU + bytes*p.ByteCPU}
}

// ListReads counts what sampling a batch asks of the caches of lists: Lists are asked for, Hits of
// them are found in the neighbor cache, and Reads blocks are read for the others.
type ListReads struct {
	Lists float64 `json:"lists"`
	Hits  float64 `json:"hits"`
	Reads float64 `json:"reads"`
}
