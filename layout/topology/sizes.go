package topology

import "gdb/layout/listfile"

// OverflowBytes is what a session of a paged reader takes for blocks that its cache has no room
// for.
const OverflowBytes = 512 << 10

// SessionBytes returns what a session takes to read a frontier of a number of nodes and a number of
// entries of their lists, without its blocks. The form of paged lists is "".
func SessionBytes(form Form, nodes, entries int64) int64 {
	switch form {
	case "":
		const pagedNode, pagedEntry = 72, 28 // see pagedSession
		return pagedNode*nodes + pagedEntry*entries
	case Compact:
		return listfile.FoundBytes * nodes
	}
	return 0
}
