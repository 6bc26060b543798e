package table

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Glob expands a pattern whose last part has *, ? or [.
func Glob(fs vfs.FS, pattern string) ([]string, error) {
	if !strings.ContainsAny(fs.PathBase(pattern), "*?[") {
		return []string{pattern}, nil
	}
	if _, err := fs.Stat(pattern); err == nil {
		return []string{pattern}, nil
	}
	dir := fs.PathDir(pattern)
	names, err := fs.List(dir)
	if err != nil {
		return nil, input.Missing(dir, fmt.Errorf("ingest: list %s: %w", dir, err))
	}
	slices.Sort(names)
	var found []string
	for _, n := range names {
		ok, err := path.Match(fs.PathBase(pattern), n)
		if err != nil {
			return nil, input.Usage("pattern %s: %w", pattern, err)
		}
		if ok {
			found = append(found, fs.PathJoin(dir, n))
		}
	}
	if len(found) == 0 {
		return nil, &input.Error{Where: pattern, What: "no file matches"}
	}
	return found, nil
}
