package kv

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// LockWait is how long a busy catalog is retried.
const LockWait = 5 * time.Second

// Catalog is the metadata of one store. It holds no lock and no open file between calls, and may
// be used from any goroutine and by several processes at once.
type Catalog struct {
	fs  vfs.FS
	dir string
}

// NewCatalog names the catalog in dir; it does no I/O.
func NewCatalog(fs vfs.FS, dir string) *Catalog { return &Catalog{fs: fs, dir: dir} }

// Create makes the catalog with its first and only data transaction: the metadata and the sets,
// synced. It is the act that makes a store exist.
func (c *Catalog) Create(ctx context.Context, m *Meta, sets map[string]*roaring.Bitmap) error {
	panic("BUG: kv: Create is missing")
}

// Meta loads the metadata. ErrNoStore if there is no catalog, ErrDamaged if its bytes are wrong.
func (c *Catalog) Meta(ctx context.Context) (*Meta, error) { panic("BUG: kv: Meta is missing") }

// Set loads a stored set by name.
func (c *Catalog) Set(ctx context.Context, name string) (*roaring.Bitmap, error) {
	panic("BUG: kv: Set is missing")
}

// Sets lists the names of the stored sets.
func (c *Catalog) Sets(ctx context.Context) ([]string, error) { panic("BUG: kv: Sets is missing") }

// PutRun writes the record of a run, replacing one of the same name.
func (c *Catalog) PutRun(ctx context.Context, r RunMeta) error {
	panic("BUG: kv: PutRun is missing")
}

// Runs lists the runs by name.
func (c *Catalog) Runs(ctx context.Context) ([]RunMeta, error) { panic("BUG: kv: Runs is missing") }

// PutProfile keeps a measured profile (JSON) under a name, such as a device's.
func (c *Catalog) PutProfile(ctx context.Context, name string, json []byte) error {
	panic("BUG: kv: PutProfile is missing")
}

// Profile loads a profile, or ErrNotFound.
func (c *Catalog) Profile(ctx context.Context, name string) ([]byte, error) {
	panic("BUG: kv: Profile is missing")
}

// Finding is one damaged place that a check found.
type Finding struct {
	Path   string // relative to the store
	Block  int64  // block or page number, -1 if the whole file
	Offset int64  // in bytes, -1 if unknown
	What   string // what is wrong: expectation and what was read
}

// Verify reads every byte of the catalog and reports what is damaged.
func (c *Catalog) Verify(ctx context.Context) ([]Finding, error) {
	panic("BUG: kv: Verify is missing")
}
