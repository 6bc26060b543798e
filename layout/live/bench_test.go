package live

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/layout/ingest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkSmallCommit measures commits of 100 edges to a store of 2 million on the disk, which are
// durable after each, with the opening of the store and the reading of the sources.
func BenchmarkSmallCommit(b *testing.B) {
	const nodes = 1 << 18
	fs, dir := vfs.Default, b.TempDir()
	write := func(name string, n int) ingest.Options {
		r, text := rand.New(rand.NewPCG(1, uint64(n))), &strings.Builder{}
		fmt.Fprintln(text, "src,dst")
		for range n {
			fmt.Fprintf(text, "%d,%d\n", r.IntN(nodes), r.IntN(nodes))
		}
		opt := ingest.Options{}
		opt.Edges, opt.Memory = fs.PathJoin(dir, name), 1<<30
		f, err := fs.Create(opt.Edges, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte(text.String()))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
		return opt
	}
	base, more := write("base.csv", 2e6), write("more.csv", 100)
	base.Out = fs.PathJoin(dir, "s")
	if _, err := ingest.Run(b.Context(), fs, base); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Append(b.Context(), fs, base.Out, more); err != nil {
			b.Fatal(err)
		}
	}
}
