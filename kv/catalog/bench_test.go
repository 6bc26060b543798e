package catalog

import (
	"testing"

	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkCatalog measures the opening of a catalog on disk, and a transaction.
func BenchmarkCatalog(b *testing.B) {
	c := New(vfs.Default, b.TempDir()+"/catalog")
	if err := c.Create(b.Context(), testMeta(), testSets()); err != nil {
		b.Fatal(err)
	}
	b.Run("op=Meta", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Meta(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=PutRun", func(b *testing.B) {
		for b.Loop() {
			if err := c.PutRun(b.Context(), kv.RunMeta{Name: "r0001"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
