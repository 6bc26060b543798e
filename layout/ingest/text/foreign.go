package text

import "bytes"

// What to do with arrays of tensors, in the words of the program that made them.
const (
	saveTensors = "save its arrays in one directory: numpy.save(\"DIR/edges.npy\", " +
		"data.edge_index.numpy()), and so data.x as features.npy and data.y as labels.npy"
	saveGraph = "save its arrays in one directory: src, dst = g.edges(); " +
		"numpy.save(\"DIR/src.npy\", src), and so dst.npy, and g.ndata[...] as features.npy and " +
		"labels.npy"
	savePickle = "load it in Python, and save its arrays in one directory: " +
		"numpy.save(\"DIR/edges.npy\", edges), features.npy, labels.npy; or a table by to_parquet"
	saveMatrix = "save its edges: numpy.save(\"DIR/edges.npy\", " +
		"numpy.stack(scipy.io.loadmat(FILE)[NAME].nonzero())), and features.npy and labels.npy"
	saveHDF5 = "save its arrays in one directory: numpy.save(\"DIR/edges.npy\", " +
		"h5py.File(FILE)[NAME][:]), and so features.npy and labels.npy; or, if pandas made it, " +
		"pandas.read_hdf(FILE).to_parquet(...)"
)

// foreign are the first bytes of files that are no text, or not in a form that is read.
var foreign = []struct{ magic, what, do string }{
	{"\xfd7zXZ\x00", "is compressed with xz", "unpack it with xz -d, or compress it with gzip"},
	{"7z\xbc\xaf", "is a 7z archive", "unpack it"},
	{"PAR1", "is a Parquet file", "give it the ending .parquet"},
	{"ARROW1", "is an Arrow file", "give it the ending .arrow"},
	{"\xff\xff\xff\xff", "is an Arrow stream, or no text",
		"give it the ending .arrows if it is one"},
	{"FEA1", "is a Feather file", "give it the ending .feather"},
	{"\x89HDF", "is an HDF5 file", saveHDF5},
	{"MATLAB 7.3", "is a MATLAB file of version 7.3, which is HDF5", saveHDF5},
	{"MATLAB ", "is a MATLAB file", saveMatrix},
	{"\x93NUMPY", "is an array", "give it the ending .npy"},
	{"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19", "is a PyTorch file", saveTensors},
	{"\x80\x02", "is a Python pickle", savePickle},
	{"\x80\x03", "is a Python pickle", savePickle},
	{"\x80\x04", "is a Python pickle", savePickle},
	{"\x80\x05", "is a Python pickle", savePickle},
	{"\x27\xa1\xb4\xf6\xf0\x60\x2e\xdd", "is a file of DGL", saveGraph},
	{"%%MatrixMarket", "is a Matrix Market file, with a line of sizes and matrix entries",
		"write a source and a destination a line"},
	{"\xff\xfe", "is UTF-16", "save it as UTF-8"},
	{"\xfe\xff", "is UTF-16", "save it as UTF-8"},
}

// checkText says what is wrong with a file that begins with head, if it is no text or would be cut
// into the wrong lines.
func checkText(name string, head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return &Error{File: name, What: f.what, Do: f.do}
		}
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return zipFile(name, head)
	}
	switch {
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return &Error{File: name, What: "is a tar archive", Do: "unpack it with tar -xf"}
	case bytes.IndexByte(head, 0) >= 0:
		before := head[:bytes.IndexByte(head, 0)]
		return &Error{File: name, Line: 1 + int64(bytes.Count(before, []byte{'\n'})),
			What: "there is a zero byte in it", Do: "is this a text file?"}
	case bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0:
		return &Error{File: name, What: "its lines end with carriage returns alone",
			Do: "convert it, as with tr '\\r' '\\n'"}
	}
	return nil
}

// zipFile says what a zip archive is, by its first members: several programs write them.
func zipFile(name string, head []byte) error {
	const members = 4096 // bytes
	switch first := head[:min(len(head), members)]; {
	case bytes.Contains(first, []byte("/data.pkl")):
		return &Error{File: name, What: "is a PyTorch file", Do: saveTensors}
	case bytes.Contains(first, []byte(".npy")):
		return &Error{File: name, What: "is an archive of arrays", Do: "give it the ending .npz"}
	case bytes.Contains(first, []byte("[Content_Types].xml")):
		return &Error{File: name, What: "is a file of Excel", Do: "save it as CSV"}
	}
	return &Error{File: name, What: "is a zip archive", Do: "unpack it with unzip"}
}
