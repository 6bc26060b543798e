package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"gdb/kv"
)

// Verify reads every byte of the catalog and reports all damage: it compares every file with the
// seal, and if all files are intact, it decodes every record. It returns ErrNoStore if there is no
// catalog.
func (c *Catalog) Verify(ctx context.Context) ([]kv.Finding, error) {
	var findings []kv.Finding
	err := c.sealed(ctx, func(s *seal) (err error) {
		findings, err = c.verify(ctx, s)
		return err
	})
	if err != nil {
		found, err := kv.Findings(err)
		return append(findings, found...), err
	}
	return findings, nil
}

// verify checks the files of s, and then the records.
func (c *Catalog) verify(ctx context.Context, s *seal) ([]kv.Finding, error) {
	var findings []kv.Finding
	for _, file := range s.files {
		if err := ctx.Err(); err != nil {
			return findings, fmt.Errorf("kv: verify %s: %w", c.dir, err)
		}
		found, err := kv.Findings(c.digest(file, true))
		if err != nil {
			return findings, err
		}
		findings = append(findings, found...)
	}
	if len(findings) > 0 {
		return findings, nil
	}
	err := c.read(ctx, s, func(r reader) (err error) {
		findings, err = r.verify()
		return err
	})
	return findings, err
}

// verify decodes every record, and goes on after damage.
func (r reader) verify() (findings []kv.Finding, err error) {
	note := func(err error) error {
		found, err := kv.Findings(err)
		findings = append(findings, found...)
		return err
	}
	h, err := r.history()
	if err := note(err); err != nil {
		return findings, err
	}
	err = r.each(keyProfile, func(name string, b []byte) error {
		if !json.Valid(b) {
			return note(kv.DamagedFile(r.c.rel(""), "profile %q is not JSON", name))
		}
		return nil
	})
	if err := note(err); err != nil {
		return findings, err
	}
	err = r.each(keyRun, func(name string, b []byte) error {
		_, err := r.run(name, b)
		return note(err)
	})
	if err := note(err); err != nil {
		return findings, err
	}
	counts := map[string]uint64{}
	err = r.each(keySet, func(name string, _ []byte) error {
		set, err := r.set(name)
		if err == nil {
			counts[name] = set.GetCardinality()
		}
		return note(err)
	})
	if err := note(err); err != nil {
		return findings, err
	}
	if h == nil {
		return findings, nil
	}
	for _, s := range h.All() {
		for i := range splitsOf(s.Meta) {
			split := &s.Meta.Splits[i]
			n, ok := counts[split.StoredName()]
			if s.Number < h.Head.Snapshot { // later commits added members
				n = min(n, split.Count)
			}
			if !ok || n != split.Count {
				note(kv.DamagedFile(r.c.rel(""), "split %q has %d nodes, the metadata counts %d",
					split.Name, n, split.Count))
			}
		}
	}
	return findings, nil
}

func splitsOf(m *kv.Meta) []kv.SplitMeta {
	if m == nil {
		return nil
	}
	return m.Splits
}
