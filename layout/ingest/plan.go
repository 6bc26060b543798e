package ingest

import (
	"gdb/internal/mem"
	"gdb/layout/ingest/badinput"
)

const (
	// processBytes is what the process takes besides the buffers planned here: the runtime, the
	// source readers' and store writers' buffers, the garbage collector's slack. Measured at
	// 40 to 55 MiB on the R-MAT graph of docs/ingest.md.
	processBytes = 64 << 20
	// bufferBytesMin is the least for sort arenas and buffers with which all steps work.
	bufferBytesMin = 32 << 20
)

// memoryPlan divides --memory among the parts of each step. Under a memory cgroup the page cache
// counts as well; a good part of the bound is left to it, since dirty pages that must be written
// before an arena can grow would stop the work.
type memoryPlan struct {
	total   int64
	sort    int64 // the arena of the sorter that is filled
	strings int64 // the arena of the id sorter that is filled beside it
	table   int64 // or the table of text ids
	merge   int64 // block buffers of a merge
	ids     int64 // the set of integer ids
	counts  int64 // out-degree counters
	scatter int64 // a bucket of feature rows
}

// planMemory divides total bytes.
func planMemory(total int64) (memoryPlan, error) {
	if total == 0 {
		total = mem.Available() / 2
	}
	least := int64(processBytes + bufferBytesMin)
	if total < least {
		return memoryPlan{}, badinput.Usage("--memory %s is too small, the least is %s",
			mem.FormatSize(total), mem.FormatSize(least))
	}
	rest := total - processBytes
	return memoryPlan{total: total,
		sort:    rest * 40 / 100,
		strings: rest * 25 / 100,
		table:   rest * 35 / 100,
		merge:   rest * 20 / 100,
		ids:     rest * 10 / 100,
		counts:  rest * 15 / 100,
		scatter: rest * 45 / 100,
	}, nil
}

// idLimit is the number of integer ids whose set fits; larger ids take the way of sorting.
func (m memoryPlan) idLimit() uint64 { return uint64(m.ids) * 7 }
