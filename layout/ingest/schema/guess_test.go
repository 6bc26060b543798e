package schema

import (
	"fmt"
	"testing"

	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestShared: the first column of a table is its key where another table refers to it by its name.
func TestShared(t *testing.T) {
	const orders = "order_id,sku,qty\n1,a,2\n2,b,1\n3,a,1\n"
	for _, c := range []struct{ name, items, orders, want string }{
		{"a key", "sku,price\na,1\nb,2\n", orders,
			"items sku map[]; orders order_id map[sku:items]"},
		{"each once", "sku,price\na,1\nb,2\n", "order_id,sku\n1,a\n2,b\n",
			"items sku map[]; orders order_id map[sku:items]"},
		{"no key, once each", "sku,price\na,1\nb,2\n", "sku,qty\na,2\nb,1\n",
			"items  map[]; orders  map[]"},
		{"no key, some twice", "sku,price\na,1\nb,2\n", "qty,sku\n2,a\n1,a\n",
			"items sku map[]; orders  map[sku:items]"},
		{"twice", "sku,price\na,1\na,2\n", orders, "items  map[]; orders order_id map[]"},
		{"other types", "sku,price\n1,1\n2,2\n", orders, "items  map[]; orders order_id map[]"},
		{"not the first", "price,sku\n1,a\n2,b\n", orders, "items  map[]; orders order_id map[]"},
		{"no id", "sku,price\n.5,1\n1.5,2\n", "order_id,sku\n1,.5\n2,.5\n",
			"items  map[]; orders order_id map[]"},
	} {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("d", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"items.csv": c.items, "orders.csv": c.orders} {
			f, err := fs.Create(fs.PathJoin("d", name), vfs.WriteCategoryUnspecified)
			if err == nil {
				_, err = f.Write([]byte(text))
			}
			if err != nil || f.Close() != nil {
				t.Fatal(err)
			}
		}
		s, err := Guess(fs, "d", &source.Options{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		got := ""
		for _, of := range s.Tables {
			if got != "" {
				got += "; "
			}
			got += fmt.Sprint(of.Name, " ", of.Key, " ", of.Foreign)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
