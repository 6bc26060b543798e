package input

import (
	"bytes"
	"regexp"
)

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

// byNetworkX converts what NetworkX reads by some function.
func byNetworkX(read string) string {
	return "convert it in Python: networkx.to_pandas_edgelist(networkx." + read +
		").to_csv(\"edges.csv\", index=False)"
}

// What to do with triples of RDF.
const saveRDF = "convert it in Python: pandas.DataFrame(rdflib.Graph().parse(FILE))" +
	".to_csv(\"train.tsv\", sep=\"\\t\", header=False, index=False), which --format triples reads"

// comments are what may come before RDF.
const comments = `^(#[^\n]*\n|\s)*`

// foreignText are forms of text that are no table, by how they begin. A table that begins so would
// be refused: each takes more than a word or a brace.
var foreignText = []struct {
	begins   *regexp.Regexp
	what, do string
}{
	{regexp.MustCompile(`^\s*(<[^\n]*(\n[^\n]*){0,20}?)?<graphml`), "is GraphML",
		byNetworkX("read_graphml(FILE)")},
	{regexp.MustCompile(`^\s*(<[^\n]*(\n[^\n]*){0,20}?)?<gexf`), "is GEXF",
		byNetworkX("read_gexf(FILE)")},
	{regexp.MustCompile(`^\s*<[^\n]*(\n[^\n]*){0,20}?<rdf:RDF`), "is RDF/XML", saveRDF},
	{regexp.MustCompile(`^\s*<\?xml`), "is XML", "write its edges as a table: a source and a " +
		"destination a line"},
	{regexp.MustCompile(comments + `(<[^>\n]*>|_:\S+)\s+<[^>\n]*>\s+[^\n]*[\s>"]\.\s*(\n|$)`),
		"is N-Triples", saveRDF},
	{regexp.MustCompile(comments + `(@prefix\s+\S*:|@base|(?i:prefix)\s+\S*:)\s+<[^>\n]*>`),
		"is Turtle", saveRDF},
	{regexp.MustCompile(`^(#[^\n]*\n|\s|[A-Z]\w*\s+("[^"]*"|\d+)\s*\n)*` +
		`graph\s*\[\s*(\n|\w+\s)`), "is GML", byNetworkX("read_gml(FILE)")},
	{regexp.MustCompile(`^(//[^\n]*\n|\s)*(strict\s+)?(di)?graph\b[^\n{,;\t]*\n?\s*\{`), "is DOT",
		byNetworkX("nx_pydot.read_dot(FILE)")},
	{regexp.MustCompile(`(?i)^\*(vertices|network|arcs|edges)\b`), "is a network of Pajek",
		byNetworkX("read_pajek(FILE)")},
	{regexp.MustCompile(`^\s*(\{\s*"[^"\n]*"\s*:|\[\s*\{\s*"|\[\s*\[\s*["\d-])` + `[^\t\n]*(\n|$)`),
		"is JSON", "convert it in Python: pandas.read_json(FILE).to_csv(\"edges.csv\", " +
			"index=False), or of lines read_json(FILE, lines=True); of NetworkX: " +
			"networkx.to_pandas_edgelist(networkx.node_link_graph(json.load(open(FILE)))).to_csv(" +
			"\"edges.csv\", index=False)"},
}

// foreignHead is how much of a file is looked at for how it begins.
const foreignHead = 4 << 10

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
	{"SQLite format 3\x00", "is a database of SQLite", "write its edges as a table: " +
		"sqlite3 -header -csv FILE 'SELECT …' > edges.csv"},
	{"\xff\xfe", "is UTF-16", "save it as UTF-8"},
	{"\xfe\xff", "is UTF-16", "save it as UTF-8"},
}

// checkText returns an error if a file that begins with head is no text, or would be cut into the
// wrong lines.
func checkText(name string, head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return &Error{Where: name, What: f.what, Do: f.do}
		}
	}
	for _, f := range foreignText {
		if f.begins.Match(head[:min(len(head), foreignHead)]) {
			return &Error{Where: name, What: f.what, Do: f.do}
		}
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return zipFile(name, head)
	}
	switch {
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return Wrong(name, "unpack it with tar -xf", "is a tar archive")
	case bytes.IndexByte(head, 0) >= 0:
		before := head[:bytes.IndexByte(head, 0)]
		return Wrong(At(name, 1+int64(bytes.Count(before, []byte{'\n'}))), "is this a text file?",
			"there is a zero byte in it")
	case bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(head, "\r"), '\r') >= 0:
		return Wrong(name, "convert it, as with tr '\\r' '\\n'",
			"its lines end with carriage returns alone")
	}
	return nil
}

// zipFile returns the error of a zip archive. Several programs write them: its first members tell
// which.
func zipFile(name string, head []byte) error {
	const members = 4096 // bytes
	first := head[:min(len(head), members)]
	for _, z := range []struct{ member, what, do string }{
		{"/data.pkl", "is a PyTorch file", saveTensors},
		{".npy", "is an archive of arrays", "give it the ending .npz"},
		{"[Content_Types].xml", "is a file of Excel", "save it as CSV"},
		{"", "is a zip archive", "unpack it with unzip"},
	} {
		if bytes.Contains(first, []byte(z.member)) {
			return &Error{Where: name, What: z.what, Do: z.do}
		}
	}
	return nil
}
