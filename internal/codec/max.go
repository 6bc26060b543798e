package codec

// maxGroup is how many values the fast kernel compares together.
const maxGroup = 32

// Max returns the largest of the values, or 0 if there are none. Readers of ids call it once per
// block: an id that is not below the number of nodes is damage, whatever the checksum says.
func Max(values []uint32) (most uint32) {
	if groups := len(values) / maxGroup; groups > 0 && fastMax != nil {
		most = fastMax(groups, &values[0])
		values = values[groups*maxGroup:]
	}
	return max(most, maxPlain(values))
}

// maxPlain does what Max does, in plain Go.
func maxPlain(values []uint32) (most uint32) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
