package catalog

import (
	"errors"
	"strings"
	"testing"

	"gdb/internal/codec"
	"gdb/kv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestVerifyRecords writes records that are whole as files and wrong in themselves: Verify finds
// each, whoever reads it is reported, and Verify goes on to the others.
func TestVerifyRecords(t *testing.T) {
	type change = func(w writer) error
	put := func(key, payload string) change {
		return func(w writer) error { return w.put([]byte(key), []byte(payload)) }
	}
	meta := func(c *Catalog) error { _, err := c.Meta(t.Context()); return err }
	train := func(c *Catalog) error { _, err := c.Set(t.Context(), "train"); return err }
	runs := func(c *Catalog) error { _, err := c.Runs(t.Context()); return err }
	for name, test := range map[string]struct {
		change change
		read   func(c *Catalog) error
		what   string
	}{
		"checksum": {func(w writer) error {
			return w.db.Set([]byte(keyMeta), []byte("12345678"), pebble.NoSync)
		}, meta, "checksum"},
		"short": {func(w writer) error {
			return w.db.Set([]byte(keyMeta), []byte("12"), pebble.NoSync)
		}, meta, "2 bytes"},
		"no metadata": {func(w writer) error {
			return w.db.Delete([]byte(keyMeta), pebble.NoSync)
		}, meta, "missing"},
		"not JSON":      {put(keyMeta, "{"), meta, "metadata"},
		"another type":  {put(keyMeta, `{"Format": 1, "Nodes": "x"}`), meta, "metadata"},
		"another store": {put(keyMeta, `{"Format": 1}`), meta, "of store"},
		"set head":      {put(keySet+"train", "{"), train, "head of set"},
		"set part": {put(string(chunkKey("train", 0)), "no roaring bitmap"), train,
			`set "train"`},
		"no set part": {func(w writer) error {
			return w.db.Delete(chunkKey("train", 0), pebble.NoSync)
		}, train, "part 0 of 1"},
		"set count": {put(keySet+"train", `{"Chunks":1,"Bytes":34,"Count":9}`), train, "members"},
		"no end": {func(w writer) error {
			return errors.Join(put(string(chunkKey("train", 1)), "more")(w),
				put(keySet+"train", `{"Chunks":2,"Bytes":34,"Count":3}`)(w))
		}, train, "bytes"},
		"run": {put(keyRun+"r", "[]"), runs, `run "r"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCreate(t, vfs.NewMem())
			if err := c.update(t.Context(), test.change); err != nil {
				t.Fatal(err)
			}
			if err := test.read(c); !errors.Is(err, kv.ErrDamaged) ||
				!strings.Contains(err.Error(), test.what) {
				t.Errorf("reading: %v, want ErrDamaged with %q", err, test.what)
			}
			found := must(c.Verify(t.Context()))(t)
			if len(found) == 0 || !strings.Contains(found[0].What, test.what) {
				t.Errorf("findings %v, want %q", found, test.what)
			}
		})
	}
}

// TestVerifyGoesOn: several wrong records give as many findings.
func TestVerifyGoesOn(t *testing.T) {
	c := mustCreate(t, vfs.NewMem())
	err := c.update(t.Context(), func(w writer) error {
		other := roaring.BitmapOf(1, 2)
		return errors.Join(w.put([]byte(keyProfile+"p"), []byte("{")), w.putSet("val@0", other),
			w.put([]byte(keySet+"train"), []byte("{")))
	})
	if err != nil {
		t.Fatal(err)
	}
	found := must(c.Verify(t.Context()))(t)
	text := ""
	for _, f := range found {
		text += f.What + "\n"
	}
	for _, want := range []string{"not JSON", `head of set "train"`, `split "train" has 0 nodes`,
		`split "val@0" has 2 nodes, the metadata counts 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("no finding with %q in\n%s", want, text)
		}
	}
}

// TestCreateRefuses: an error leaves nothing that looks like a store, and Create works afterwards.
func TestCreateRefuses(t *testing.T) {
	for _, name := range []string{"", "a\x00b", strings.Repeat("x", nameBytesMax+1)} {
		c := testCatalog(vfs.NewMem())
		err := c.Create(t.Context(), testMeta(), map[string]*roaring.Bitmap{name: roaring.New()})
		if err == nil {
			t.Errorf("a set named %.10q was taken", name)
		}
		if _, err := c.Meta(t.Context()); !errors.Is(err, kv.ErrNoStore) {
			t.Errorf("after a refused Create: %v, want ErrNoStore", err)
		}
		if err := c.Create(t.Context(), testMeta(), testSets()); err != nil {
			t.Errorf("Create after one that was refused: %v", err)
		}
	}
}

// TestCreateErrors fails each operation of Create in turn.
func TestCreateErrors(t *testing.T) {
	for i := int32(0); ; i++ {
		fs, inject := vfs.NewMem(), errorfs.OnIndex(i)
		err := testCatalog(errorfs.Wrap(fs, inject)).Create(t.Context(), testMeta(), testSets())
		c := testCatalog(fs)
		switch _, opened := c.Meta(t.Context()); {
		case err == nil && opened != nil:
			t.Fatalf("operation %d: Create gave no error, and opening %v", i, opened)
		case err != nil && !errors.Is(err, errorfs.ErrInjected):
			t.Errorf("operation %d failed, and the error is %v", i, err)
		case errors.Is(opened, kv.ErrNoStore):
			if err := c.Create(t.Context(), testMeta(), testSets()); err != nil {
				t.Fatalf("operation %d: Create after one that failed: %v", i, err)
			}
		case opened != nil:
			t.Fatalf("operation %d failed: opening gives %v", i, opened)
		}
		checkWhole(t, c)
		if err == nil && inject.Load() >= 0 {
			if i < 30 {
				t.Errorf("only %d operations could fail", i)
			}
			return
		}
	}
}

// TestSealOfAnotherVersion: a catalog of a later format is not called damaged.
func TestSealOfAnotherVersion(t *testing.T) {
	fs := vfs.NewMem()
	c := mustCreate(t, fs)
	b := must(c.readSeal())(t).encode()
	b[8]++ // the version
	e := codec.Enc{}
	e.U32(codec.Checksum(b[4:]))
	copy(b, e.B)
	writeAll(t, fs, fs.PathJoin(c.dir, sealName), b)
	_, err := c.Meta(t.Context())
	if !errors.Is(err, kv.ErrFormat) || errors.Is(err, kv.ErrDamaged) {
		t.Errorf("a later version: %v, want ErrFormat", err)
	}
	if _, err := c.Verify(t.Context()); !errors.Is(err, kv.ErrFormat) {
		t.Errorf("verify: %v, want ErrFormat", err)
	}
}
