package plan

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
