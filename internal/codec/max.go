package codec

// maxGroup is how many values the fast kernel takes at a time.
const maxGroup = 32

// Max returns the largest of the values, 0 of none. Whoever reads ids from a file calls it once for
// each block: an id that is not below the number of nodes is damage, whatever the checksum says.
func Max(values []uint32) (most uint32) {
	if groups := len(values) / maxGroup; groups > 0 && fastMax != nil {
		most = fastMax(groups, &values[0])
		values = values[groups*maxGroup:]
	}
	return max(most, maxPlain(values))
}

// maxPlain is Max in plain Go.
func maxPlain(values []uint32) (most uint32) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
