// Package ui serves a store to people, in a browser: what it holds, its runs, statements, and the
// neighborhood of a node. The pages are templates with one small script, and need no network.
package ui

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"

	"gdb/internal/message"
	"gdb/serve/web"
	"gdb/train/report"

	"github.com/dustin/go-humanize"
)

//go:embed *.html script.js
var files embed.FS

var templates = template.Must(template.New("ui").Funcs(template.FuncMap{
	"score":   score,
	"count":   func(n uint64) string { return humanize.Comma(int64(n)) },
	"program": func() string { return message.Program },
	"runURL":  runURL,
	"nodeURL": nodeURL,
}).ParseFS(files, "*.html"))

// site writes the pages of what a service has.
type site struct{ *web.Service }

// Pages returns the pages.
func Pages() []web.Page {
	return []web.Page{
		{Path: "/{$}", Name: "ui_store", Write: writer((*site).store)},
		{Path: "/run/{name}", Name: "ui_run", Write: writer((*site).run)},
		{Path: "/compare", Name: "ui_compare", Write: writer((*site).compare)},
		{Path: "/statement", Name: "ui_statement", Write: writer((*site).statement)},
		{Path: "/node", Name: "ui_node", Write: writer((*site).node)},
		{Path: "/script.js", Name: "ui_script", Kind: "text/javascript; charset=utf-8",
			Write: script},
	}
}

// script writes the script of the pages.
func script(_ context.Context, _ *web.Service, out *bytes.Buffer, _ *http.Request) int {
	text, err := files.ReadFile("script.js")
	if err != nil {
		panic(fmt.Sprintf("BUG: ui: %v", err))
	}
	out.Write(text)
	return http.StatusOK
}

// view is what the frame of each page shows.
type view struct {
	Title, Store string
	Of           any // what the page itself shows
}

// writer returns a function that writes a page, or a page that says what is wrong.
func writer(write func(*site, context.Context, *bytes.Buffer, *http.Request) error) func(
	ctx context.Context, s *web.Service, out *bytes.Buffer, q *http.Request) int {
	return func(ctx context.Context, s *web.Service, out *bytes.Buffer, q *http.Request) int {
		p := &site{s}
		err := write(p, ctx, out, q)
		if err == nil {
			return http.StatusOK
		}
		out.Reset()
		f := newFailure(err)
		if err := p.render(out, "failure.html", f.What, f); err != nil {
			panic(fmt.Sprintf("BUG: ui: %v", err))
		}
		return f.Status
	}
}

// failure is what is wrong, for people.
type failure struct {
	Status          int
	What, Where, Do string
}

func newFailure(err error) *failure {
	f := &failure{}
	f.Status, f.What, f.Where, f.Do = web.Explain(err)
	return f
}

// render fills a template.
func (p *site) render(out *bytes.Buffer, name, title string, of any) error {
	if err := templates.ExecuteTemplate(out, name, &view{title, p.Store().Path(), of}); err != nil {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}

// links lead from reports, whose pages have a frame of their own, to the other pages.
func links() []report.Link {
	return []report.Link{{Text: "store", To: "/"}, {Text: "statement", To: "/statement"},
		{Text: "node", To: "/node"}}
}

func runURL(name string) string { return "/run/" + url.PathEscape(name) }

func nodeURL(id string) string { return "/node?id=" + url.QueryEscape(id) }
