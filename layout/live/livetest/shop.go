// Package livetest makes a typed store that grows, for tests of what learns from it.
package livetest

import (
	"fmt"
	"strings"
	"testing"

	"gdb/internal/files"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/live"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How many nodes Shop makes, and Grow adds.
const (
	Users, Items         = 30, 20
	MoreUsers, MoreItems = 3, 2
)

// Shop ingests users, of whom all have features, a label and a split, items, and what users buy,
// which is split too.
func Shop(t testing.TB, fs vfs.FS, dir string) *layout.Store {
	t.Helper()
	return shop(t, fs, dir, false)
}

// ShopBothWays does what Shop does, and items have edges to the users who buy them.
func ShopBothWays(t testing.TB, fs vfs.FS, dir string) *layout.Store {
	t.Helper()
	return shop(t, fs, dir, true)
}

func shop(t testing.TB, fs vfs.FS, dir string, reverse bool) *layout.Store {
	t.Helper()
	opt := options(t, fs, part{users: [2]int{0, Users}, items: [2]int{0, Items}, edges: 200})
	opt.Out, opt.EdgeSplit, opt.Seed, opt.Reverse = dir, "random=60/20/20", 1, reverse
	opt.FeatureCols, opt.LabelCol, opt.SplitCol = "user.age", "user.plan", "user.part"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	return open(t, fs, dir)
}

// Grow appends users, items, and what both old and new users buy: new users are numbered before
// all items.
func Grow(t testing.TB, fs vfs.FS, dir string) *layout.Store {
	t.Helper()
	opt := options(t, fs, part{users: [2]int{Users, Users + MoreUsers},
		items: [2]int{Items, Items + MoreItems}, edges: 20})
	if _, err := live.Append(t.Context(), fs, dir, opt); err != nil {
		t.Fatal(err)
	}
	return open(t, fs, dir)
}

// Shrink deletes the first user.
func Shrink(t testing.TB, fs vfs.FS, dir string) *layout.Store {
	t.Helper()
	write(t, fs, "gone.txt", "0\n")
	del := live.Deletion{}
	del.Memory, del.NodeTables = 1<<30, []source.NodeTable{{Type: "user", File: "gone.txt"}}
	if _, err := live.Delete(t.Context(), fs, dir, del); err != nil {
		t.Fatal(err)
	}
	return open(t, fs, dir)
}

func open(t testing.TB, fs vfs.FS, dir string) *layout.Store {
	t.Helper()
	s, err := layout.OpenLive(t.Context(), fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// part is what one ingest or append has: the first user and item, and those after the last, and how
// many edges.
type part struct {
	users, items [2]int
	edges        int
}

// options writes tables of the users and items of a part, and of edges that join any up to these.
func options(t testing.TB, fs vfs.FS, p part) (opt ingest.Options) {
	t.Helper()
	var text [3]strings.Builder
	text[0].WriteString("id,age,plan,part\n")
	for i := p.users[0]; i < p.users[1]; i++ {
		fmt.Fprintf(&text[0], "%d,%d,%s,%s\n", i, 20+i*7%31, []string{"free", "pro"}[i%2],
			[]string{"train", "train", "val", "test"}[i/2%4])
	}
	text[1].WriteString("sku,price\n")
	for i := p.items[0]; i < p.items[1]; i++ {
		fmt.Fprintf(&text[1], "s%d,%d\n", i, i*i)
	}
	text[2].WriteString("user,item\n")
	for i := range p.edges {
		fmt.Fprintf(&text[2], "%d,s%d\n", (i*i+i/3)%p.users[1],
			(7*i+i*i*i)%p.items[1])
	}
	for i, name := range []string{"users.csv", "items.csv", "buys.csv"} {
		write(t, fs, name, text[i].String())
	}
	opt.Memory = 1 << 30
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "users.csv"},
		{Type: "item", File: "items.csv"}}
	opt.Relations = []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "buys.csv"}}
	return opt
}

func write(t testing.TB, fs vfs.FS, name, text string) {
	t.Helper()
	if err := files.WriteAtomic(fs, name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
