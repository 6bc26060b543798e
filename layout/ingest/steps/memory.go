package steps

import (
	"gdb/internal/mem"
	"gdb/layout/ingest/input"
)

const (
	// ProcessBytes is what the process takes besides the buffers planned here: the runtime, the
	// source readers' and store writers' buffers, the garbage collector's slack. Measured at
	// 40 to 55 MiB on the R-MAT graph of docs/ingest.md.
	ProcessBytes = 64 << 20
	// BufferBytesMin is the least for sort arenas and buffers with which all steps work.
	BufferBytesMin = 32 << 20
)

// Memory divides --memory among the parts of each step. Under a memory cgroup the page cache
// counts as well; a good part of the bound is left to it, since dirty pages that must be written
// before an arena can grow would stop the work.
type Memory struct {
	Total   int64
	Sort    int64 // the arena of the sorter that is filled
	Strings int64 // the arena of the id sorter that is filled beside it
	Table   int64 // or the table of text ids
	Merge   int64 // block buffers of a merge
	IDs     int64 // the set of integer ids
	Counts  int64 // out-degree counters
	Scatter int64 // a bucket of feature rows
}

// PlanMemory divides total bytes; half of what is available if it is 0.
func PlanMemory(total int64) (Memory, error) {
	if total == 0 {
		total = mem.Available() / 2
	}
	least := int64(ProcessBytes + BufferBytesMin)
	if total < least {
		return Memory{}, input.Usage("--memory %s is too small, the least is %s",
			mem.FormatSize(total), mem.FormatSize(least))
	}
	rest := total - ProcessBytes
	return Memory{Total: total,
		Sort:    rest * 40 / 100,
		Strings: rest * 25 / 100,
		Table:   rest * 35 / 100,
		Merge:   rest * 20 / 100,
		IDs:     rest * 10 / 100,
		Counts:  rest * 15 / 100,
		Scatter: rest * 45 / 100,
	}, nil
}

// IDLimit is the number of integer ids whose set fits; larger ids take the way of sorting.
func (m Memory) IDLimit() uint64 { return uint64(m.IDs) * 7 }
