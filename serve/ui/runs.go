package ui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"gdb/kv"
	"gdb/serve/web"
	"gdb/train/report"
	"gdb/train/runs"
)

// store writes what the store holds, and its runs.
func (p *site) store(ctx context.Context, out *bytes.Buffer, _ *http.Request) error {
	all, err := p.Store().Catalog().Runs(ctx)
	if err != nil {
		return err
	}
	return p.render(out, "store.html", p.Store().Path(), struct {
		Facts [][2]string
		Runs  []kv.RunMeta
	}{report.Facts(p.Store().Meta()), all})
}

// run writes the report of a run: what it recorded, and nothing that is computed anew.
func (p *site) run(ctx context.Context, out *bytes.Buffer, q *http.Request) error {
	name := q.PathValue("name")
	if err := p.know(ctx, name); err != nil {
		return err
	}
	d, err := report.Of(ctx, p.Store(), name)
	if err != nil {
		return err
	}
	d.Links = links()
	return report.Write(out, d)
}

// runsMost is how many runs are compared at a time.
const runsMost = 32

// compare writes several runs beside each other.
func (p *site) compare(ctx context.Context, out *bytes.Buffer, q *http.Request) error {
	names := q.URL.Query()["run"]
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 || len(names) > runsMost {
		return web.Wrong("run", fmt.Sprintf("%d runs are chosen", len(names)),
			fmt.Sprintf("choose 1 to %d on the page of the store", runsMost))
	}
	if err := p.know(ctx, names...); err != nil {
		return err
	}
	s, err := report.SeveralOf(ctx, p.Store(), names)
	if err != nil {
		return err
	}
	s.Links = links()
	return report.WriteSeveral(out, s)
}

// know returns an error if the store does not have all of some runs.
func (p *site) know(ctx context.Context, names ...string) error {
	all, err := p.Store().Catalog().Runs(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(r kv.RunMeta) bool { return r.Name == name }) {
			return fmt.Errorf("run %q: %w", shortened(name), kv.ErrNotFound)
		}
	}
	return nil
}

// score formats a score for people; a missing one as -.
func score(v *float64) string {
	if v == nil {
		return "-"
	}
	return runs.Figure(*v, 4)
}
