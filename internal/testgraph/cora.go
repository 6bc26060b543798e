// Package testgraph holds the graphs that tests and the demo run on.
package testgraph

import (
	"archive/tar"
	"bytes"
	_ "embed" // the archive of Cora
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
)

// coraArchive is a tar of the array directory "cora" (its README.md names source and licence).
//
//go:embed cora.tar.zst
var coraArchive []byte

// WriteCora writes the array directory of Cora to dir, which it makes: edges.npy, features.npy,
// labels.npy, {train,val,test}_idx.npy and README.md, 16 MB in all.
func WriteCora(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("testgraph: make %s: %w", dir, err)
	}
	z, err := zstd.NewReader(bytes.NewReader(coraArchive), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("testgraph: open the archive of Cora: %w", err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("testgraph: read the archive of Cora: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(fs, fs.PathJoin(dir, path.Base(h.Name)), r); err != nil {
			return fmt.Errorf("testgraph: write Cora: %w", err)
		}
	}
}

func writeFile(fs vfs.FS, name string, r io.Reader) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}
