package web

import (
	"bytes"
	"cmp"
	"context"
	"net/http"

	"gdb"
	"gdb/layout"
)

// Page is a page for people.
type Page struct {
	Path string // a pattern of net/http
	Name string // in metrics
	// Write writes the page of what a service has, or an error page for what Explain says of an
	// error. It takes as long as a request of an endpoint at most.
	Write func(ctx context.Context, s *Service, out *bytes.Buffer, q *http.Request) (status int)
	// Kind is the type of the content; "" for HTML.
	Kind string
}

const (
	// pageBytes is what is counted for a page while it is made: its text, and what it is made of.
	pageBytes = 4 << 20
	// pagesAtOnce is how many pages are made at a time. Others wait.
	pagesAtOnce = 2
)

// policy allows pages what comes from the server itself, and nothing else: no script in a page, no
// frame around it, no address elsewhere. Styles may stand in it, which carry no text of a store.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; " +
	"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page serves a page.
func (h HTTP) page(p Page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Sec-Fetch-Site") == "cross-site" && q.URL.RawQuery != "" {
			writeFailure(w, &failure{Status: http.StatusForbidden, Where: "header Sec-Fetch-Site",
				What: "a page of another site asks", Do: "open the page by itself"})
			return
		}
		ctx, cancel := context.WithTimeout(q.Context(), timeUsual)
		defer cancel()
		r, end := h.newRequest()
		defer end()
		var out bytes.Buffer
		status := 0
		err := r.inTurn(ctx, h.pages, func() error {
			if err := r.take("a page", pageBytes); err != nil {
				return err
			}
			status = p.Write(ctx, r.Service, &out, q)
			return nil
		})
		if err != nil {
			writeFailure(w, failureOf(err))
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Type", cmp.Or(p.Kind, "text/html; charset=utf-8"))
		w.WriteHeader(status)
		_, _ = w.Write(out.Bytes()) // a client that is gone needs no error
	})
}

// inTurn calls do when there is room among those that turns lets in; nil lets all in.
func (r *request) inTurn(ctx context.Context, turns chan struct{}, do func() error) error {
	if turns != nil {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return do()
}

// Explain returns an error as clients get it: a status of HTTP, what is wrong, where in the
// request, which may be "", and what to do.
func Explain(err error) (status int, what, where, do string) {
	f := failureOf(err)
	return f.Status, f.What, f.Where, f.Do
}

// Store returns the store that is served.
func (s *Service) Store() *layout.Store { return s.opt.Store }

// DB returns the store as it is open for statements.
func (s *Service) DB() *gdb.DB { return s.db }

// Ask runs a statement, when it is its turn among those of the endpoint query, and calls use with
// its rows, which are counted in the memory of the service until use returns.
func (s *Service) Ask(ctx context.Context, statement string, use func(*Table) error) error {
	r := &request{Service: s}
	defer r.end()
	return r.inTurn(ctx, s.turns["query"], func() error {
		t, err := r.statement(ctx, statement, nil)
		if err != nil {
			return err
		}
		return use(t)
	})
}
