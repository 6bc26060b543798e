package plan

// Profile is what reading rows and computing cost on this machine, measured once per device, way
// of reading and size of rows, and kept in the store's catalog.
type Profile struct {
	RandomReads float64 `json:"random_reads_per_s"` // of RowBytes
	RowBytes    int     `json:"row_read_bytes"`     // of a random read of one row
	Sequential  float64 `json:"sequential_bytes_per_s"`
	// A batch of reads takes ReadSeconds for each and ByteSeconds for each byte, verified and
	// copied; of these the CPU works ReadCPU and ByteCPU.
	ReadSeconds float64 `json:"read_s"`
	ByteSeconds float64 `json:"byte_s"`
	ReadCPU     float64 `json:"read_cpu_s"`
	ByteCPU     float64 `json:"byte_cpu_s"`
	// Write is a byte of a runtime file; as reading in large pieces where that could not be
	// measured, as Unwritten says.
	Write     Work    `json:"write_byte"`
	Unwritten string  `json:"unwritten,omitempty"`
	GFLOPS    float64 `json:"gflops"` // of matrix products, all threads
	Cores     float64 `json:"cores"`  // that the process gets

	// Copy is copying a row from anywhere in memory, Hit finding one in a cache and copying it,
	// and Miss what a cache does for one that it has not, besides reading; Decide is planning an
	// access of a superbatch.
	Copy   Work `json:"copy_row"`
	Hit    Work `json:"hit_row"`
	Miss   Work `json:"miss_row"`
	Decide Work `json:"plan_access"`

	// Timed are steps and samplings of a batch, by their settings. They are kept so that equal
	// plans are made of equal times.
	Timed map[string]Work `json:"timed,omitempty"`
	// Tried is what sampling reads with caches of lists, by settings and sizes.
	Tried map[string]ListReads `json:"tried,omitempty"`

	Kept string `json:"kept,omitempty"` // why it could not be kept in the catalog
}

// Reading is what so many reads of so many bytes cost.
func (p *Profile) Reading(reads, bytes float64) Price {
	return Price{Bytes: bytes, Wait: reads*p.ReadSeconds + bytes*p.ByteSeconds,
		CPU: reads*p.ReadCPU + bytes*p.ByteCPU}
}
