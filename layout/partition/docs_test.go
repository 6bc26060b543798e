package partition

import (
	"strings"
	"testing"

	"gdb/internal/expect"
)

// TestDocumentedBuckets compares docs/format/buckets.md with the code.
func TestDocumentedBuckets(t *testing.T) {
	page := expect.Page(t, "../../docs/format", "buckets.md")
	expect.Values(t, page, map[string]any{"layout of buckets": bucketsLayout,
		"most partitions": Most})
	for _, name := range []string{BucketsKind, BucketsKindIndex, edgesPath, indexPath} {
		if !strings.Contains(page, name) {
			t.Errorf("buckets.md does not name %s", name)
		}
	}
}
