//go:build !amd64

package stream

func (f *filter) mark(src []uint32, marks *[marksMost / marksWord]uint16) {
	f.markPlain(src, marks)
}
