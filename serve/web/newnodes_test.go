package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/layout"
	"gdb/layout/draft"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/train"
	"gdb/train/calibrate"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shopFiles are tables of which a store with columns is made, and, new-, of nodes that it lacks.
var shopFiles = map[string]string{
	"item.csv":  "sku,price,name\na,3.5,Pen\nb,900,Lamp\nc,12,Book\nd,,Cup\n",
	"buys.csv":  "item,user\na,1\nb,2\na,3\nb,4\nc,5\nb,5\nd,1\n",
	"likes.csv": "user,item\n1,b\n3,c\n5,a\n2,a\n",
	"user.csv": "no,age,city,joined,seen,vip,score,bio,plan,part\n" +
		"1,30,Rome,2026-01-05,2026-01-05T10:00:00Z,true,0.5,likes red pens a lot,free,train\n" +
		"2,40,Bonn,2025-03-02,2026-02-05T11:30:00Z,false,1.25,has a lamp,pro,train\n" +
		"3,22,Rome,2024-12-31,2026-01-07T23:00:00Z,true,,reads,free,val\n" +
		"4,35,Oslo,2026-05-05,2026-03-05T00:00:01Z,false,-3,,pro,val\n" +
		"5,,Oslo,2025-07-14,,true,7,reads and reads the news,pro,train\n",
	"follows.csv": "from,to\n1,2\n2,3\n3,4\n4,5\n5,1\n2,1\n",
	"new-user.csv": "no,age,city,joined,seen,vip,score,bio\n" +
		"8,33,Rome,2026-01-05,2026-01-06T12:00:00Z,true,2.5,red lamps\n9,,Lima,,,,,\n" +
		"10,-7,,2030-02-28,2026-01-06,false,1e3,\"a \"\"new\"\" one\"\n",
	"new-item.csv":    "sku,price,name\ne,7,Pen\n",
	"new-buys.csv":    "item,user\na,8\ne,8\nb,8\nb,9\n",
	"new-likes.csv":   "user,item\n1,e\n9,e\n",
	"new-follows.csv": "from,to\n10,8\n1,8\n5,8\n2,9\n",
}

// newUsers are the nodes of new-user.csv and new-item.csv as a request has them.
const newUsers = `{"type":"user","columns":{"age":33,"city":"Rome","joined":"2026-01-05",
	"seen":"2026-01-06T12:00:00Z","vip":true,"score":2.5,"bio":"red lamps"},%s},
	{"columns":{"city":"Lima","bio":""},"type":"user",%s},
	{"columns":{"age":-7,"joined":"2030-02-28","seen":"2026-01-06","vip":false,"score":1e3,
	"bio":"a \"new\" one"},"type":"user"}`

// columnStore is a store with columns of one type of nodes, or of two.
type columnStore struct {
	fs     vfs.FS
	store  *layout.Store
	dev    blockdev.Device
	models []string
	typed  bool
}

func (c *columnStore) tables(prefix string) (opt ingest.Options) {
	opt.Memory = 1 << 30
	opt.IDCol, opt.NodeTables = "user.no", []source.NodeTable{{Type: "user",
		File: prefix + "user.csv"}}
	opt.Relations = []source.Relation{{Src: "user", Name: "follows", Dst: "user",
		File: prefix + "follows.csv"}}
	opt.SrcCol, opt.DstCol = "follows.from", "follows.to"
	if c.typed {
		opt.IDCol += ",item.sku"
		opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: "item",
			File: prefix + "item.csv"})
		opt.Relations = append(opt.Relations, source.Relation{Src: "item", Name: "buys",
			Dst: "user", File: prefix + "buys.csv"}, source.Relation{Src: "user", Name: "likes",
			Dst: "item", File: prefix + "likes.csv"})
		opt.SrcCol += ",buys.item,likes.user"
		opt.DstCol += ",buys.user,likes.item"
	}
	return opt
}

// mustColumnStore ingests the tables and trains runs.
func mustColumnStore(t *testing.T, typed bool, models ...string) *columnStore {
	t.Helper()
	c := &columnStore{fs: vfs.NewMem(), dev: devtest.Open(t, blockdev.Options{}), typed: typed,
		models: models}
	for name, text := range shopFiles {
		layouttest.WriteFile(t, c.fs, name, []byte(text))
	}
	opt := c.tables("")
	opt.Out, opt.LabelCol, opt.SplitCol = "s", "user.plan", "user.part"
	if _, err := ingest.Run(t.Context(), c.fs, opt); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.store, err = layout.OpenLive(t.Context(), c.fs, "s"); err != nil {
		t.Fatal(err)
	}
	for _, model := range models {
		s := setting.Default()
		s.Model, s.Fanout, s.Hidden, s.Epochs, s.Run = model, []int{4, 4}, 8, 2, model
		s.Threads, s.Memory = 2, 1<<30
		result, err := train.Run(t.Context(), c.store, c.dev, s, nil)
		if err == nil {
			r := &calibrate.Record{Split: "val", Temperature: 1.75, Epoch: result.BestEpoch}
			err = r.Write(runs.Open(c.store, model))
		}
		if err != nil {
			t.Fatal(model, err)
		}
	}
	return c
}

// serve returns the address of a server of the runs.
func (c *columnStore) serve(t *testing.T) string {
	t.Helper()
	s, err := Open(t.Context(), Options{Store: c.store, Device: c.dev, Memory: 1 << 30, Threads: 2,
		Runs: c.models, Notes: func(text string) { t.Error(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return mustServe(t, s, "")
}

// fromFiles returns what gdb predict writes of the new users in files, without their ids.
func (c *columnStore) fromFiles(t *testing.T, model string, calibrated bool) (rows []string) {
	t.Helper()
	with, err := draft.WithNodes(t.Context(), c.fs, c.store, model, c.tables("new-"))
	if err != nil {
		t.Fatal(err)
	}
	defer with.Close()
	err = train.Predict(t.Context(), with.Store, c.dev, train.PredictConfig{Run: model,
		NewSince: strconv.FormatUint(with.Since, 10), Probabilities: true, Out: "p.csv",
		Calibrated: calibrated, Limits: train.Limits{Memory: 1 << 30, Threads: 2}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(strings.NewReader(string(layouttest.ReadFile(t, c.fs,
		"p.csv")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[1:] {
		rows = append(rows, strings.Join(row[1:], " "))
	}
	return rows
}

// TestNewNodesAsFromFiles: new nodes with columns are predicted to the bit as gdb predict predicts
// them from files, of stores of one type and of several, by models that read types or do not.
func TestNewNodesAsFromFiles(t *testing.T) {
	for _, c := range []*columnStore{
		mustColumnStore(t, false, "sage", "gcn", "hsage"),
		mustColumnStore(t, true, "sage", "gat", "rgcn", "hsage", "hgt", "rgat")} {
		nodes := fmt.Sprintf(newUsers, `"neighbors":["user:1","user:5"],"new_neighbors":[2]`,
			`"neighbors":["user:2"]`)
		if c.typed {
			nodes = `{"type":"item","columns":{"price":7,"name":"Pen"},"neighbors":["user:1"],
				"new_neighbors":{"likes":[2]}},` + fmt.Sprintf(newUsers,
				`"neighbors":{"follows":["user:5","user:1"],"buys":["item:b","item:a"]},
				"new_neighbors":{"buys":[0],"follows":[3]}`,
				`"neighbors":{"buys":["item:b"],"follows":["user:2"]}`)
		}
		address := c.serve(t)
		for k, model := range slices.Repeat(c.models, 2) {
			calibrated := k >= len(c.models)
			status, text := post(t, address, "/predict", fmt.Sprintf(`{"run":%q,"calibrated":%v,
				"probabilities":true,"nodes":[%s]}`, model, calibrated, nodes))
			var got predictOut
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
				t.Fatal(model, status, text, err)
			}
			if c.typed {
				if p := got.Predictions[0]; p.Prediction != nil || p.Probabilities != nil {
					t.Errorf("%s: an item is predicted: %+v", model, p)
				}
				got.Predictions = got.Predictions[1:]
			}
			want := c.fromFiles(t, model, calibrated)
			for i, p := range got.Predictions {
				row := fmt.Sprint(p.Prediction)
				for _, v := range p.Probabilities {
					row += fmt.Sprintf(" %v", v)
				}
				if len(want) != 3 || row != want[i] {
					t.Errorf("%s, typed %v: new node %d is %s, want %q", model, c.typed, i, row,
						want)
				}
			}
		}
	}
}

// TestNewNodesRefused: what is wrong with a new node is said with its place.
func TestNewNodesRefused(t *testing.T) {
	address := mustColumnStore(t, true, "sage").serve(t)
	user := func(rest string) string { return `{"nodes":[{"type":"user",` + rest + `}]}` }
	cell := func(of string) string { return user(`"columns":{` + of + `}`) }
	for _, c := range []struct{ body, where, what, do string }{
		{`{"nodes":[{}]}`, "nodes[0].type", "have several types", "give one of user, item"},
		{`{"nodes":[{"type":"shop"}]}`, "nodes[0].type", `there is no type "shop"`, "user, item"},
		{user(`"features":[1]`), "nodes[0].features", "reads columns", "give columns"},
		{cell(`"size":3`), "nodes[0].columns.size", "have no such column", "name one of age, city"},
		{cell(`"age":"31"`), "nodes[0].columns.age", `"31" is not an integer`, "give an integer"},
		{cell(`"age":31.5`), "nodes[0].columns.age", "31.5 is not an integer", "leave the column"},
		{cell(`"age":9223372036854775808`), "nodes[0].columns.age", "is not an integer", "give"},
		{cell(`"age":true`), "nodes[0].columns.age", "true is not an integer", "give an integer"},
		{cell(`"age":null`), "nodes[0].columns.age", "null is no value", "leave the column out"},
		{cell(`"age":[1]`), "nodes[0].columns.age", "a list or an object is not", "give an"},
		{cell(`"score":1e999`), "nodes[0].columns.score", "1e999 is not a number", "give a number"},
		{cell(`"score":NaN`), "nodes[0].columns.score", "NaN is no number of JSON", "leave it out"},
		{cell(`"score":-Infinity`), "nodes[0].columns.score", "-Infinity is no", "leave it out"},
		{cell(`"score":"1"`), "nodes[0].columns.score", `"1" is not a number`, "give a number"},
		{cell(`"vip":1`), "nodes[0].columns.vip", "1 is not true or false", "give true or"},
		{cell(`"city":5`), "nodes[0].columns.city", "5 is not text", "give text"},
		{cell(`"joined":"yesterday"`), "nodes[0].columns.joined", `"yesterday" is not a date`,
			`such as "2026-01-05"`},
		{cell(`"joined":"2026-02-30"`), "nodes[0].columns.joined", "is not a date", "give"},
		{cell(`"joined":20000`), "nodes[0].columns.joined", "20000 is not a date", "give"},
		{cell(`"seen":"10:00"`), "nodes[0].columns.seen", "is not a date and time", "give"},
		{cell(`"plan":7`), "nodes[0].columns.plan", "7 is not text", "give text"},
		{user(`"neighbors":["user:1"]`), "nodes[0].neighbors", "several relations to nodes of " +
			"type user", "each of follows, buys"},
		{user(`"neighbors":{"likes":["user:1"]}`), "nodes[0].neighbors",
			`no relation "likes" leads to nodes of type user`, "follows, buys"},
		{user(`"neighbors":{"buys":["user:1"]}`), "nodes[0].neighbors.buys[0]", "of type user",
			"comes from nodes of type item"},
		{user(`"neighbors":{"buys":["item:zz"]}`), "nodes[0].neighbors.buys[0]", "no node", ""},
		{user(`"neighbors":7`), "nodes[0].neighbors", "a JSON number stands where", ""},
		{user(`"new_neighbors":{"follows":[1]}`), "nodes[0].new_neighbors.follows",
			"no new node 1", "name 0 to 0"},
		{user(`"new_neighbors":{"buys":[0]}`), "nodes[0].new_neighbors.buys[0]", "of type user",
			"comes from nodes of type item"},
		{user(`"extra":1`), "nodes[0]", `unknown field "extra"`, "openapi"},
		{`{"nodes":{}}`, "nodes", "no list", "give a list"},
		{`{"nodes":[{}` + strings.Repeat(",{}", 256) + `]}`, "nodes", "more than 256", "256 at a"},
	} {
		status, text := post(t, address, "/predict", c.body)
		var f struct{ Error failure }
		if err := json.Unmarshal([]byte(text), &f); err != nil ||
			status != http.StatusBadRequest && status != http.StatusNotFound ||
			!strings.HasSuffix(f.Error.Where, c.where) || !strings.Contains(f.Error.What, c.what) ||
			!strings.Contains(f.Error.Do, c.do) {
			t.Errorf("%.80s: %d %s, want %+v", c.body, status, text, c)
		}
	}
	page := layouttest.ReadFile(t, vfs.Default, "../../docs/serving.md")
	_, example, found := strings.Cut(string(page), "```\n{\"nodes\": [{\"type\"")
	if example, _, _ = strings.Cut(example, "```"); !found {
		t.Fatal("docs/serving.md has no example of columns")
	}
	for _, body := range []string{cell(""), `{"nodes": [{"type"` + example} {
		if status, text := post(t, address, "/predict", body); status != http.StatusOK ||
			!strings.Contains(text, `"prediction":"`) {
			t.Errorf("%s: %d, %s", body, status, text)
		}
	}
	r, err := http.Get("http://" + address + "/info")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var i info
	if err := json.NewDecoder(r.Body).Decode(&i); err != nil ||
		!i.Runs[0].Columns || !i.Runs[0].Calibrated || i.Columns["user"]["joined"] != "date" ||
		i.Columns["item"]["price"] != "float64" {
		t.Errorf("%+v, %v", i, err)
	}
	plain := mustServe(t, mustOpen(t), "")
	for _, c := range []struct{ body, want string }{
		{`{"ids":[7],"calibrated":true}`, "changes nothing but probabilities"},
		{`{"ids":[7],"calibrated":true,"probabilities":true}`, "run first has no temperature"},
		{`{"nodes":[{"columns":{"a":1}}]}`, "reads rows of features, and no columns"},
		{`{"nodes":[{"type":"user","features":[0]}]}`, "nodes of the store have no types"},
		{`{"nodes":[{"features":[0,0,0,0,0,0],"neighbors":{"r":[1]}}]}`,
			"edges of the store have no types"}} {
		status, text := post(t, plain, "/predict", c.body)
		if status != http.StatusBadRequest || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %q", c.body, status, text, c.want)
		}
	}
}
