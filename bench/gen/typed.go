package gen

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gdb/internal/rng"

	"github.com/parquet-go/parquet-go"
)

// Typed is the kind of graph that is tables of several types of nodes.
const Typed = "typed"

// Shares of the nodes, in 32nds, that each table has; orders have the rest, half of all.
const (
	userShare = 8
	itemShare = 7
	tagShare  = 1
)

// Parameters of the shop. With them a user's own columns and items tell little of the kind, those
// of its neighbors more, and tags of the items most; what a user looks at after it was asked tells
// it nearly surely, which no model may see.
const (
	tagsOfItem   = 4
	ownViews     = .3  // share of views of items of the user's kind, before it was asked
	ownOrders    = .4  // and of orders
	ownLeak      = .95 // of both, after it was asked
	ownTags      = .6  // share of an item's tags of its kind
	userSignal   = .1  // distance of means of kinds in vectors, in standard deviations
	itemSignal   = .12
	tagSignal    = .4
	ordersOfDeal = 2 // edges of an order: to its user and to its item
)

// The time that views and orders spread over, in order of their rows.
var (
	shopOpens = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	shopSpan  = 4 * 365 * 24 * time.Hour
)

// Purposes of random numbers of typed graphs.
const (
	genUser = iota + 100
	genItem
	genTag
	genOrder
	genView
	genTagged
)

// userRow is a row of users.parquet. Kind is the label; asked is when it is asked for.
type userRow struct {
	ID        int64     `parquet:"user_id"`
	Joined    time.Time `parquet:"joined,timestamp(microsecond)"`
	Country   string    `parquet:"country,dict"`
	Age       *int32    `parquet:"age,optional"`
	Premium   bool      `parquet:"premium"`
	Asked     time.Time `parquet:"asked,timestamp(microsecond)"`
	Embedding []float32 `parquet:"embedding"`
	Kind      string    `parquet:"kind,dict"`
	Split     *string   `parquet:"split,optional,dict"`
}

// itemRow is a row of items.parquet.
type itemRow struct {
	ID        int64     `parquet:"item_id"`
	Price     *float64  `parquet:"price,optional"`
	Brand     string    `parquet:"brand,dict"`
	Listed    int32     `parquet:"listed,date"`
	Embedding []float32 `parquet:"embedding"`
}

// tagRow is a row of tags.parquet, whose key is a string.
type tagRow struct {
	Tag       string    `parquet:"tag"`
	Uses      int64     `parquet:"uses"`
	Embedding []float32 `parquet:"embedding"`
}

// orderRow is a row of orders.parquet, with a user's and an item's key.
type orderRow struct {
	ID     int64     `parquet:"order_id"`
	User   int64     `parquet:"user_id"`
	Item   int64     `parquet:"item_id"`
	Placed time.Time `parquet:"placed,timestamp(microsecond)"`
	Amount float64   `parquet:"amount"`
	Gift   bool      `parquet:"gift"`
}

// viewRow is a row of views.parquet: an edge with a time and a number that ends it tell.
type viewRow struct {
	User   int64     `parquet:"user_id"`
	Item   int64     `parquet:"item_id"`
	At     time.Time `parquet:"at,timestamp(microsecond)"`
	Rating float64   `parquet:"rating"`
}

// taggedRow is a row of tagged.parquet: an edge without a time.
type taggedRow struct {
	Item int64  `parquet:"item_id"`
	Tag  string `parquet:"tag"`
}

// shop makes the tables. Whatever a row has is a function of the seed and its number.
type shop struct {
	*generator
	users, items, tags, orders, views uint64
}

func newShop(g *generator) (*shop, error) {
	s := &shop{generator: g}
	s.users, s.items = g.Nodes*userShare/32, g.Nodes*itemShare/32
	s.tags = g.Nodes * tagShare / 32
	s.orders = g.Nodes - s.users - s.items - s.tags
	rest := s.orders*ordersOfDeal + s.items*tagsOfItem
	if s.tags < uint64(g.Classes) || g.Edges <= rest {
		return nil, fmt.Errorf("typed: %d nodes and %d edges: want at least %d nodes, for a tag a "+
			"class, and more than %d edges, two an order and %d an item", g.Nodes, g.Edges,
			32*g.Classes, rest, tagsOfItem)
	}
	s.views, g.edges = g.Edges-rest, g.Edges
	return s, nil
}

// tables writes all tables.
func (s *shop) tables() error {
	for _, write := range []func() error{s.writeUsers, s.writeItems, s.writeTags, s.writeOrders,
		s.writeViews, s.writeTagged} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes a table: fill sets row number v. Memory: a row group, of 64 MiB.
func writeTable[T any](s *shop, name string, rows uint64, width int,
	fill func(v uint64, row *T)) (err error) {
	f, err := s.FS.Create(s.FS.PathJoin(s.Out, name+".parquet"), "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := bufio.NewWriterSize(f, 1<<20)
	group := max(1<<12, 64<<20/(64+4*width))
	w := parquet.NewGenericWriter[T](to, parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(int64(group)))
	buf := make([]T, min(rows, 1<<12))
	for first := uint64(0); first < rows; first += uint64(len(buf)) {
		n := min(rows-first, uint64(len(buf)))
		for i := range buf[:n] {
			fill(first+uint64(i), &buf[i])
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if s.Progress != nil {
			s.Progress(name, int64(first+n), int64(rows), "rows")
		}
	}
	return errors.Join(w.Close(), to.Flush())
}

// kind is the class of row v of a table: of items and tags a class has each row of one remainder.
func (s *shop) kind(purpose, v uint64) uint64 {
	if purpose == genUser {
		draw := rng.NewStream(rng.Key(s.Seed, genLabel, v))
		return draw.Below(uint64(s.Classes))
	}
	return v % uint64(s.Classes)
}

// ofKind draws a row, of n, of a class.
func (s *shop) ofKind(kind, n uint64, draw *rng.Stream) uint64 {
	c := uint64(s.Classes)
	return kind + c*draw.Below((n-kind+c-1)/c)
}

// vector fills a vector of normal noise around the mean of a class, whose values are ±signal.
func (s *shop) vector(to []float32, purpose, v, kind uint64, signal float32) []float32 {
	width := s.widths()[purpose]
	if cap(to) < width {
		to = make([]float32, width)
	}
	r := rand.New(rand.NewPCG(rng.Key(s.Seed, genFeature, purpose), v))
	draw := rng.NewStream(rng.Key(s.Seed, genMean, purpose, kind))
	for j := range to[:width] {
		to[j] = float32(r.NormFloat64()) + signal*float32(2*int(draw.Uint64()>>63)-1)
	}
	return to[:width]
}

// widths of the vectors: items have Dim values, users a quarter, and tags a sixteenth.
func (s *shop) widths() map[uint64]int {
	return map[uint64]int{genItem: s.Dim, genUser: s.Dim / 4, genTag: s.Dim / 16}
}

// moment is when a share of the shop's time is over, in whole microseconds.
func moment(share float64) time.Time {
	return shopOpens.Add(time.Duration(share * float64(shopSpan)).Truncate(time.Microsecond))
}

// asked is the share of time after which a user is asked for.
func (s *shop) asked(user uint64) float64 {
	draw := rng.NewStream(rng.Key(s.Seed, genUser, user))
	return .5 + .4*draw.Float64()
}

var countries = []string{"de", "fr", "us", "in", "br", "jp", "ng", "mx"}

func (s *shop) writeUsers() error {
	width := s.Dim / 4
	return writeTable(s, "users", s.users, width, func(v uint64, row *userRow) {
		kind := s.kind(genUser, v)
		draw := rng.NewStream(rng.Key(s.Seed, genUser, v, 1))
		row.ID, row.Kind = s.userKey(v), fmt.Sprintf("k%02d", kind)
		row.Joined, row.Asked = moment(.5*draw.Float64()), moment(s.asked(v))
		row.Country = countries[draw.Below(uint64(len(countries)))]
		if draw.Float64() < .2 {
			row.Country = countries[kind%uint64(len(countries))]
		}
		age := int32(18 + draw.Below(50))
		if row.Age = &age; draw.Float64() < .1 {
			row.Age = nil
		}
		row.Premium = draw.Float64() < .3
		row.Embedding = s.vector(row.Embedding, genUser, v, kind, userSignal)
		row.Split = splitOf(draw.Float64(), s.TrainFrac)
	})
}

var splitNames = []string{"train", "val", "test"}

// splitOf is the split of a node by a draw from 0 to 1; nil for none.
func splitOf(x, train float64) *string {
	switch {
	case x < train:
		return &splitNames[0]
	case x < 1.5*train:
		return &splitNames[1]
	case x < 2*train:
		return &splitNames[2]
	}
	return nil
}

func (s *shop) writeItems() error {
	brands := max(1, s.items/100)
	return writeTable(s, "items", s.items, s.Dim, func(v uint64, row *itemRow) {
		kind := s.kind(genItem, v)
		draw := rng.NewStream(rng.Key(s.Seed, genItem, v))
		price := s.price(v)
		if row.Price = &price; draw.Float64() < .05 {
			row.Price = nil
		}
		row.ID, row.Brand = s.itemKey(v), fmt.Sprintf("brand %d", draw.Below(brands))
		row.Listed = int32(shopOpens.Unix()/(24*60*60)) - int32(draw.Below(1000))
		row.Embedding = s.vector(row.Embedding, genItem, v, kind, itemSignal)
	})
}

// price of an item, in cents that a kind makes likelier.
func (s *shop) price(item uint64) float64 {
	draw := rng.NewStream(rng.Key(s.Seed, genItem, item, 1))
	return float64(100+draw.Below(9900)+1000*(item%uint64(s.Classes))) / 100
}

func (s *shop) writeTags() error {
	return writeTable(s, "tags", s.tags, s.Dim/16, func(v uint64, row *tagRow) {
		row.Tag, row.Uses = tagKey(v), int64(v%7)
		row.Embedding = s.vector(row.Embedding, genTag, v, s.kind(genTag, v), tagSignal)
	})
}

// userKey and itemKey are keys with gaps; items are in an order of their own.
func (s *shop) userKey(v uint64) int64 { return int64(1_000_000 + 3*v) }
func (s *shop) itemKey(v uint64) int64 { return int64(7 + 5*(s.items-1-v)) }
func tagKey(v uint64) string           { return fmt.Sprintf("tag %d", v) }

// pick draws who meets which item: users by a square law, items by what the user's kind and the
// time make likely.
func (s *shop) pick(draw *rng.Stream, when, own float64) (user, item uint64) {
	x := draw.Float64()
	user = min(uint64(x*x*float64(s.users)), s.users-1)
	if when >= s.asked(user) {
		own = ownLeak
	}
	if draw.Float64() < own {
		return user, s.ofKind(s.kind(genUser, user), s.items, draw)
	}
	return user, draw.Below(s.items)
}

func (s *shop) writeOrders() error {
	return writeTable(s, "orders", s.orders, 0, func(v uint64, row *orderRow) {
		draw := rng.NewStream(rng.Key(s.Seed, genOrder, v))
		when := (float64(v) + draw.Float64()) / float64(s.orders)
		user, item := s.pick(&draw, when, ownOrders)
		*row = orderRow{ID: int64(v), User: s.userKey(user), Item: s.itemKey(item),
			Placed: moment(when), Gift: draw.Float64() < .1,
			Amount: s.price(item) * float64(1+draw.Below(3))}
	})
}

func (s *shop) writeViews() error {
	return writeTable(s, "views", s.views, 0, func(v uint64, row *viewRow) {
		draw := rng.NewStream(rng.Key(s.Seed, genView, v))
		when := (float64(v) + draw.Float64()) / float64(s.views)
		user, item := s.pick(&draw, when, ownViews)
		*row = viewRow{User: s.userKey(user), Item: s.itemKey(item), At: moment(when),
			Rating: s.rating(user, item, &draw)}
	})
}

// rating is from 1 to 5: high where user and item are of one kind.
func (s *shop) rating(user, item uint64, draw *rng.Stream) float64 {
	r := 1 + draw.Below(4)
	if s.kind(genUser, user) == s.kind(genItem, item) {
		r += 1 + draw.Below(2)
	}
	return float64(min(r, 5))
}

func (s *shop) writeTagged() error {
	return writeTable(s, "tagged", s.items*tagsOfItem, 0, func(v uint64, row *taggedRow) {
		item := v / tagsOfItem
		draw := rng.NewStream(rng.Key(s.Seed, genTagged, v))
		tag := draw.Below(s.tags)
		if draw.Float64() < ownTags {
			tag = s.ofKind(s.kind(genItem, item), s.tags, &draw)
		}
		row.Item, row.Tag = s.itemKey(item), tagKey(tag)
	})
}
