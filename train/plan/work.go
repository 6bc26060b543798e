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
