//go:build !amd64

package listfile

func (l *locator) locate(nodes []uint32, at []uint64, blocks, seek []uint32) int {
	return l.locatePlain(nodes, at, blocks, seek)
}
