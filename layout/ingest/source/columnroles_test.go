package source_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"

	"github.com/parquet-go/parquet-go"
)

// rolesOf opens a source and tells what its columns are taken for, as "name=role".
func rolesOf(t *testing.T, f files, opt source.Options) (string, []string, error) {
	t.Helper()
	src, err := open(t, f, opt)
	if err != nil {
		return "", nil, err
	}
	defer src.Close()
	var roles []string
	for _, c := range src.Info().Columns {
		if c.Role == "" {
			c.Role = "-"
		}
		roles = append(roles, c.Name+"="+c.Role)
	}
	return strings.Join(roles, " "), src.Info().Notes, nil
}

const rolesOfNodes = "id,age,y,part,city\na,1,0,train,2\nb,2,1,test,3\n"

// TestRoles: a column has one role, whatever gives it.
func TestRoles(t *testing.T) {
	f := files{"e.csv": "src,dst\na,b\n", "n.csv": rolesOfNodes,
		"odd.csv": "id,\"a,b\",c:d,\"say \"\"hi\"\"\",c,d\na,1,2,x,3,4\nb,1,2,y,3,4\n"}
	set := func(fn func(*source.Options)) source.Options {
		o := source.Options{Sources: []string{"e.csv"}, Nodes: "n.csv"}
		fn(&o)
		return o
	}
	for _, c := range []struct {
		name string
		opt  source.Options
		want string // of the nodes
		note string
	}{
		{"all numbers", set(func(o *source.Options) { o.FeatureCols = "*" }),
			"id=node id age=feature y=label part=- city=feature", ""},
		{"names with commas", source.Options{Sources: []string{"e.csv"}, Nodes: "odd.csv",
			FeatureCols: `"a,b",c:d`, Categorical: `"say ""hi"""`},
			`id=node id a,b=feature c:d=feature say "hi"=feature, by category c=- d=-`, ""},
		{"a range", set(func(o *source.Options) { o.FeatureCols, o.SplitCol = "age:city", "part" }),
			"id=node id age=feature y=label part=split city=feature", ""},
		{"a label by its name, listed", set(func(o *source.Options) { o.FeatureCols = "age,y" }),
			"id=node id age=feature y=label part=- city=-",
			"the column y is the label, and no feature; --label-col none makes it one"},
		{"no label", set(func(o *source.Options) {
			o.FeatureCols, o.LabelCol = "age,y", "none"
		}), "id=node id age=feature y=feature part=- city=-", ""},
		{"another label", set(func(o *source.Options) { o.FeatureCols, o.LabelCol = "*", "city" }),
			"id=node id age=feature y=feature part=- city=label", ""},
		{"other ids", set(func(o *source.Options) { o.FeatureCols, o.IDCol = "*", "age" }),
			"id=- age=node id y=label part=- city=feature", ""},
		{"a file of features", set(func(o *source.Options) {
			o.Nodes, o.Features, o.LabelCol, o.Labels = "", "n.csv", "city", "n.csv"
			o.SplitCol = ""
		}), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes, err := rolesOf(t, f, c.opt)
			if c.want == "" { // text is among the features of that file
				if err == nil || !strings.Contains(err.Error(), `column "part" has text`) {
					t.Fatalf("%s, error %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := "src=source dst=destination " + c.want; got != want {
				t.Errorf("roles %s, want %s", got, want)
			}
			if !strings.Contains(strings.Join(notes, "\n"), c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
	for _, c := range []struct {
		opt  source.Options
		want string
	}{
		{set(func(o *source.Options) { o.FeatureCols, o.LabelCol = "age,y", "y" }),
			"--label-col and --feature-cols both name the column y"},
		{set(func(o *source.Options) { o.Categorical, o.SplitCol = "part", "part" }),
			"--split-col and --categorical both name the column part"},
		{set(func(o *source.Options) { o.FeatureCols, o.IDCol = "age,id", "id" }),
			"--id-col and --feature-cols both name the column id"},
		{set(func(o *source.Options) { o.LabelCol, o.IDCol = "id", "id" }),
			"the column has the ids"},
		{set(func(o *source.Options) { o.LabelCol, o.SplitCol = "part", "part" }),
			"the column has the labels"},
		{set(func(o *source.Options) { o.FeatureCols = "y" }), "have another role"},
	} {
		got, _, err := rolesOf(t, f, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, error %v; want %q", got, err, c.want)
		}
	}
}

// TestEdgeRoles: names of the ends in all the forms that programs write, and questions where there
// are none.
func TestEdgeRoles(t *testing.T) {
	for _, c := range []struct {
		name, file string
		opt        source.Options
		want       string // roles, or the beginning of an error after a !
	}{
		{"blank name", "src,dst,\n1,2,\n2,3,\n", source.Options{},
			"src=source dst=destination 2=-"},
		{"Neo4j", ":START_ID(Cell),weight:int,:END_ID(Cell)\n101,7,102\n", source.Options{},
			":START_ID(Cell)=source weight:int=weight :END_ID(Cell)=destination"},
		{"Neo4j with types", ":START_ID,:END_ID,:TYPE,since:long\n1,2,KNOWS,3\n", source.Options{},
			":START_ID=source :END_ID=destination :TYPE=type since:long=int64"},
		{"a type that the flag leaves out", "a,b,cost:float\n1,2,0.5\n",
			source.Options{WeightCol: "cost", Header: "yes"},
			"a=source b=destination cost:float=weight"},
		{"two words", "Source Node,when,amount,Target Node\n1,5,7,2\n", source.Options{},
			"Source Node=source when=int64 amount=int64 Target Node=destination"},
		{"camel case", "note,targetId,sourceId\n9,1,2\n", source.Options{},
			"note=int64 targetId=destination sourceId=source"},
		{"flags first", "src,dst,weight,timestamp\n1,2,3,4\n",
			source.Options{WeightCol: "timestamp"},
			"src=source dst=destination weight=int64 timestamp=weight"},
		{"no weight", "src,dst,weight\n1,2,x\n", source.Options{WeightCol: "none"},
			"src=source dst=destination weight=string"},
		{"three columns", "who,amount,whom\n1,5,2\n", source.Options{Header: "yes"},
			"!e.csv: which columns are source and destination? No usual name says it"},
		{"one end by name", "shop,amount,target\n1,5,2\n", source.Options{},
			"!e.csv: which column is the source? No usual name says it; the destination is " +
				"target, and the columns are shop, amount, target; name it with --src-col"},
		{"one end by flag", "who,amount,whom\n1,5,2\n",
			source.Options{Header: "yes", SrcCol: "who"},
			"!e.csv: which column is the destination? No usual name says it; the source is who, " +
				"and the columns are who, amount, whom; name it with --dst-col"},
		{"one column, two flags", "src,dst,k\n1,2,3\n",
			source.Options{WeightCol: "k", TimeCol: "k"},
			"!--weight-col and --time-col both name the column k"},
		{"gap", "src,dst,weight\na,x,1\nb,x,\n", source.Options{},
			`!e.csv line 3: column "weight" is empty; --weight-col none leaves the column out`},
		{"decimal comma", "src;dst;weight\na;x;0,5\n", source.Options{},
			`!e.csv line 2: column "weight", "0,5", is not a number; a number has a point: 0.5`},
		{"date", "src,dst,time\na,x,2020-01-31\nb,x,31/01/2020\n", source.Options{},
			`!e.csv line 3: column "time", "31/01/2020", is not a time; write seconds`},
		{"NaN", "src,dst,weight\na,x,NaN\n", source.Options{},
			`!e.csv line 2: column "weight" is "NaN", not a finite number`},
		{"users and items", "user_id,item_id\n1,1\n2,1\n", source.Options{},
			"!e.csv: its columns user_id and item_id look like two kinds of nodes"},
		{"MovieLens", "userId,movieId,rating,timestamp\n1,1,4,964982703\n",
			source.Options{SrcCol: "userId", DstCol: "movieId"},
			"!e.csv: its columns userId and movieId look like two kinds of nodes"},
		{"two kinds, typed", "user_id,item_id\n1,1\n",
			source.Options{SrcType: "user", DstType: "item"}, "user_id=source item_id=destination"},
		{"two kinds, one", "user_id,item_id\n1,1\n", source.Options{SameIDs: true},
			"user_id=source item_id=destination"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Sources = []string{"e.csv"}
			got, _, err := rolesOf(t, files{"e.csv": c.file}, c.opt)
			want, fails := strings.CutPrefix(c.want, "!")
			if fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%s, error %v; want %q", got, err, want)
				}
				return
			}
			if err != nil || got != want {
				t.Errorf("%s, error %v; want %s", got, err, want)
			}
		})
	}
}

// TestTwoKinds: which names of columns tell two kinds of nodes.
func TestTwoKinds(t *testing.T) {
	asks := func(head string) bool {
		_, _, err := rolesOf(t, files{"e.csv": head + "\n1,2\n2,3\n"},
			source.Options{Sources: []string{"e.csv"}, Header: "yes"})
		var bad *input.Error
		if err != nil && !(errors.As(err, &bad) && strings.Contains(bad.What, "two kinds")) {
			t.Fatal(err)
		}
		return err != nil
	}
	for _, head := range []string{"user_id,item_id", "userId,movieId", "uid,iid", "users,groups",
		"author,paper", ":START_ID(User),:END_ID(Item)", "customer,product", "from_user,to_item",
		"userid,itemid", "drug,protein", "buyer,shop"} {
		if !asks(head) {
			t.Errorf("%s is taken for one kind", head)
		}
	}
	for _, head := range []string{"src,dst", "from,to", "u,v", "a,b", "id1,id2", "citing,cited",
		"follower,followee", "paper1,paper2", "citing_paper,cited_paper", "user,friend", "x,y",
		"author,coauthor", "fromNodeId,toNodeId", "sender,receiver", "user_a,user_b", "node,user",
		"parentId,childId", ":START_ID(Cell),:END_ID(Cell)", "source_user,target_users",
		"head,tail", "caller,callee", "person_1,person_2", "Source Node,Target Node",
		"Referred by,New customer", "old user,new user"} {
		if asks(head) {
			t.Errorf("%s is taken for two kinds", head)
		}
	}
}

// TestNotTaken: what "*" leaves out though it looks like numbers is said, and so is that nothing is
// stored of a table of nodes; a number with a decimal comma is not called text.
func TestNotTaken(t *testing.T) {
	const taken, gap = "--feature-cols * leaves out ", "age with gaps, which --fill mean fills"
	const comma = "price with commas in the place of points"
	for _, c := range []struct {
		nodes string
		set   func(*source.Options)
		want  string // a note, or after a ! an error; "" for neither
	}{
		{"id;x;age;price;city\na;1;;2,5;Bonn\nb;2;3;;Rome\n", func(*source.Options) {},
			taken + gap + "; " + comma},
		{"id;x;age\na;1;\nb;2;3\n", func(o *source.Options) { o.Fill = "mean" }, ""},
		{"id;x;age\na;1;\nb;2;3\n", func(o *source.Options) { o.AllowNaN = true }, ""},
		{"id;x;age\na;1;2\nb;2;3\n", func(*source.Options) {}, ""},
		{"id;age;y\na;;0\nb;3;1\n", func(*source.Options) {},
			"!n.csv: --feature-cols * takes no column, and leaves out " + gap},
		{"id;city\na;Bonn\nb;Rome\n", func(*source.Options) {},
			"!n.csv: --feature-cols *: no other column has numbers; name columns"},
		{"id;price\na;2,5\nb;3,5\n", func(o *source.Options) { o.FeatureCols = "price" },
			`!n.csv: column "price" has "3,5", which is not a number; a number has a point: 3.5`},
		{"id;city\na;Bonn\nb;Rome\n", func(o *source.Options) { o.FeatureCols = "" },
			"n.csv: not stored: city; --feature-cols names columns of features ('*': all " +
				"numbers), --label-col a column of labels, and"},
		{"id;y;a;b;c;d;e\na;0;1;1;1;1;x\nb;1;1;1;1;1;y\n",
			func(o *source.Options) { o.FeatureCols = "b" },
			"n.csv: not stored: a, c, d, e; --feature-cols names columns of features ('*': " +
				"all numbers), and"},
		{"id;y\na;0\nb;1\n", func(o *source.Options) { o.FeatureCols = "" }, ""},
		{"id\na\nb\n", func(o *source.Options) { o.FeatureCols = "" }, ""},
	} {
		opt := source.Options{Sources: []string{"e.csv"}, Nodes: "n.csv", FeatureCols: "*"}
		c.set(&opt)
		_, notes, err := rolesOf(t, files{"e.csv": "src,dst\na,b\n", "n.csv": c.nodes}, opt)
		said := strings.Join(notes, "\n")
		if err != nil {
			said = "!" + err.Error()
		}
		more := err != nil || strings.Contains(said, "leaves out") ||
			strings.Contains(said, "stored")
		if !strings.Contains(said, c.want) || c.want == "" && more {
			t.Errorf("%q: %s\nwant %s", c.nodes, said, c.want)
		}
	}
}

// TestIDsOfNodes: the column of labels is never that of ids, and an index of pandas is.
func TestIDsOfNodes(t *testing.T) {
	type row struct {
		Topic string  `parquet:"topic"`
		F0    float64 `parquet:"f0"`
		Paper string  `parquet:"paper"`
	}
	pandas := func(index string) []byte {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.KeyValueMetadata("pandas",
			`{"index_columns": [`+index+`], "columns": []}`))
		if _, err := w.Write([]row{{"red", 1, "a"}, {"blue", 2, "b"}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name  string
		nodes any
		label string
		want  string
	}{
		{"a named index", pandas(`"paper"`), "topic", "topic=label f0=feature paper=node id"},
		{"a range", pandas(`{"kind": "range", "start": 0, "stop": 2}`), "topic", "!--id-col"},
		{"the first column", "topic,f0,note\nred,1,a\n", "topic", "!--id-col"},
		{"a label by name", "label,f0,note\nred,1,a\n", "", "!--id-col"},
		{"features alone", "f0,f1,f2\n1,2,3\n", "", "!--id-col"},
		{"an index without a name", ",topic,f0\na,red,1\n", "topic",
			"0=node id topic=label f0=feature"},
		{"blank behind", "id,label,f0,\na,red,0.5,\n", "", "id=node id label=label f0=feature 3=-"},
		{"Neo4j", "name:string,movieId:ID(Movie),:LABEL\nx,a,Film\n", "",
			"name:string=- movieId:ID(Movie)=node id :LABEL=label"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "n.csv"
			if _, isText := c.nodes.(string); !isText {
				name = "n.parquet"
			}
			got, _, err := rolesOf(t, files{"e.csv": "src,dst\na,b\n", name: c.nodes},
				source.Options{Sources: []string{"e.csv"}, Nodes: name, LabelCol: c.label})
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%s, error %v; want %q", got, err, want)
				}
				return
			}
			if want := "src=source dst=destination " + c.want; err != nil || got != want {
				t.Errorf("%s, error %v; want %s", got, err, want)
			}
		})
	}
}

// TestNumberedIDs: ids that are formed like usual names are not taken for a header.
func TestNumberedIDs(t *testing.T) {
	for text, want := range map[string]int{"node1,node2\nnode2,node3\n": 2,
		"id-1,id-2\nid-2,id-3\n": 2, "node1,node2\n1,2\n": 1, "id_1,id_2\n5,6\n": 1} {
		src, err := open(t, files{"e.csv": text}, source.Options{Sources: []string{"e.csv"},
			Header: "auto"})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if got, err := dump(src); err != nil || strings.Count(got, "edge") != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestSplitWords: a column that is called split has words of splits, or the row is named.
func TestSplitWords(t *testing.T) {
	f := files{"e.csv": "src,dst\na,b\n", "n.csv": "id,split\na,train\nb,fold7\n"}
	opt := source.Options{Sources: []string{"e.csv"}, Nodes: "n.csv"}
	_, _, err := rolesOf(t, f, opt)
	want := `n.csv line 3: column "split", "fold7", is none of train, val, test and none`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	opt.SplitCol = "none"
	if got, _, err := rolesOf(t, f, opt); err != nil || !strings.HasSuffix(got, "split=-") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestTriplesHeader: a first line that names the columns is no triple.
func TestTriplesHeader(t *testing.T) {
	triples := func(head string) files {
		return files{"d/train.tsv": head + "a\tr\tb\nb\tr\tc\n", "d/valid.tsv": head + "a\tr\tc\n",
			"d/test.tsv": head + "c\tr\ta\n"}
	}
	runSources(t, []sourceTest{
		{"usual names", triples("head\trelation\ttail\n"), source.Options{},
			"edge a b type r train\nedge b c type r train\n" +
				"edge a c type r val\nedge c a type r test",
			"triples 0 0 text typed", "the first line of the triples names the columns"},
	})
	for _, head := range []string{"h\tr\tt\n", "links von\tArt\tnach\n"} {
		src, err := open(t, triples(head), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := dump(src)
		if err != nil || strings.Count(got, "edge") != 4 || !strings.Contains(got, "edge a b") {
			t.Errorf("%q: %s %v", head, got, err)
		}
		src.Close()
	}
	// The same triple in all files is none.
	same := files{"d/train.tsv": "a\tr\tb\nb\tr\tc\n", "d/test.tsv": "a\tr\tb\n"}
	if src, err := open(t, same, source.Options{}); err != nil {
		t.Error(err)
	} else if got, err := dump(src); err != nil || strings.Count(got, "edge") != 3 {
		t.Errorf("%s %v", got, err)
	}
	// Columns in another order have their roles by name.
	f := files{"d/train.tsv": "subject\tobject\tpredicate\na\tb\tr\n",
		"d/test.tsv": "subject\tobject\tpredicate\nb\ta\tr\n"}
	src, err := open(t, f, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got, err := dump(src); err != nil || !strings.Contains(got, "edge a b type r") {
		t.Errorf("%s %v", got, err)
	}
	// --header no reads every line.
	plain, err := open(t, triples("head\trelation\ttail\n"), source.Options{Header: "no"})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if got, err := dump(plain); err != nil || strings.Count(got, "edge") != 7 {
		t.Errorf("%s %v", got, err)
	}
}

// TestComments: lines that are passed over are counted, and may be read.
func TestComments(t *testing.T) {
	f := files{"e.csv": "#cats,bob\nbob,#birds\n#birds,ann\nann,zed\n"}
	for _, c := range []struct {
		comment, want, note string
	}{
		{"", "edge bob #birds\nedge ann zed\n",
			"2 lines that begin with #: passed over as comments; --comment '' reads such lines"},
		{"none", "edge #cats bob\nedge bob #birds\nedge #birds ann\nedge ann zed\n", ""},
		{"b", "edge #cats bob\nedge #birds ann\nedge ann zed\n", "1 line that begins with b"},
	} {
		src, err := open(t, f, source.Options{Sources: []string{"e.csv"}, Comment: c.comment,
			Header: "no"})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		notes := strings.Join(src.Info().Notes, "\n")
		if got, err := dump(src); err != nil || got != c.want || !strings.Contains(notes, c.note) ||
			c.note == "" && strings.Contains(notes, "passed over") {
			t.Errorf("--comment %q: %q, error %v, notes %q", c.comment, got, err, notes)
		}
	}
	_, err := open(t, f, source.Options{Sources: []string{"e.csv"}, Header: "auto"})
	if err == nil || !strings.Contains(err.Error(), "2 lines that begin with # are passed over") {
		t.Errorf("error %v", err)
	}
	_, err = open(t, f, source.Options{Sources: []string{"e.csv"}, Comment: "//"})
	if err == nil || !strings.Contains(err.Error(), `--comment "//" is not one sign`) {
		t.Errorf("error %v", err)
	}
}

// TestFeatureNames: the source tells the names of the columns of features.
func TestFeatureNames(t *testing.T) {
	src, err := open(t, files{"e.csv": "src,dst\na,b\n", "n.csv": rolesOfNodes},
		source.Options{Sources: []string{"e.csv"}, Nodes: "n.csv", FeatureCols: "*"})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var names []string
	for _, c := range src.Info().Features[0].Columns {
		names = append(names, c.Name)
	}
	if want := []string{"age", "city"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}
