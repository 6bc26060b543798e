package web

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"gdb/internal/bug"
	"gdb/internal/message"
)

// The times after which a client that is slow is given up.
const (
	readTime  = 10 * time.Second // for the header and the body
	writeTime = 30 * time.Second // for the answer, from the header on
	idleTime  = 60 * time.Second // between two requests
	endTime   = 15 * time.Second // for requests in flight when the server ends
)

// headerMost bounds the header of a request, in bytes.
const headerMost = 16 << 10

// HTTP serves a Service over HTTP.
type HTTP struct {
	*Service
	// Token is what requests have to show, as "Authorization: Bearer TOKEN"; "" for nothing. Then
	// only requests that name this machine itself are answered.
	Token string
	// Pages are served to people beside the endpoints. A browser shows the token as the password of
	// any user.
	Pages []Page
	// Follow has newer snapshots answer; nil for the one of the service alone.
	Follow *Follow
}

// Serve answers requests until ctx is cancelled, and returns its error then. Requests in flight are
// answered first, for some seconds. It closes the listener.
func (h HTTP) Serve(ctx context.Context, l net.Listener) error {
	if h.Follow != nil {
		defer h.Follow.begin(ctx, h.Service)()
	}
	server := &http.Server{Handler: h.handler(), ReadHeaderTimeout: readTime, ReadTimeout: readTime,
		WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: headerMost,
		ErrorLog: log.New(io.Discard, "", 0)} // it tells of each client that goes
	failed := make(chan error, 1)
	go func() {
		defer bug.Catch()
		failed <- server.Serve(h.bounded(l))
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	err := fmt.Errorf("serve: interrupted: %w", ctx.Err())
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if slow := server.Shutdown(last); slow != nil {
		h.opt.Notes("requests that took too long were cut off")
		err = errors.Join(err, server.Close())
	}
	<-failed
	return err
}

// handler routes requests to endpoints.
func (h HTTP) handler() http.Handler {
	mux := http.NewServeMux()
	var paths []string
	for _, e := range endpoints {
		serve := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			h.serveJSON(w, q, e)
		}))
		if e.plain != nil {
			serve = e.plain(h.Service)
		}
		paths = append(paths, e.method+" "+e.path)
		mux.HandleFunc(e.path, func(w http.ResponseWriter, q *http.Request) {
			h.guarded(w, q, e, serve)
		})
	}
	for _, p := range h.Pages {
		e := &endpoint{method: http.MethodGet, path: p.Path, name: p.Name, timeMost: timeUsual}
		mux.HandleFunc(p.Path, func(w http.ResponseWriter, q *http.Request) {
			h.guarded(w, q, e, h.page(p))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		writeFailure(w, &failure{Status: statusNotFound, Where: shortened(q.URL.Path),
			What: "there is nothing", Do: "ask one of " + strings.Join(paths, ", ")})
	})
	return mux
}

// statusWriter remembers the status of an answer; 0 before one is written.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader writes the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guarded serves a request whose sender may ask, counts it, and survives a mistake of the program:
// the other requests go on.
func (h HTTP) guarded(rw http.ResponseWriter, q *http.Request, e *endpoint, serve http.Handler) {
	w, begun := &statusWriter{ResponseWriter: rw}, time.Now()
	defer func() {
		if what := recover(); what != nil && what != http.ErrAbortHandler {
			h.opt.Notes(fmt.Sprintf("this is a bug in %s: %s: %v\n%s", message.Program, e.path,
				what, debug.Stack()))
			if w.status == 0 {
				writeFailure(w, &failure{Status: http.StatusInternalServerError,
					What: "this is a bug in the server", Do: "report it with what its notes say"})
			}
		}
		h.metrics.answered(e.name, w.status, begun)
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if f := h.mayAsk(q, e); f != nil {
		if f.Status == http.StatusUnauthorized && len(h.Pages) > 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="the token is the password"`)
		}
		writeFailure(w, f)
		return
	}
	serve.ServeHTTP(w, q)
}

// mayAsk returns why a request is not answered, or nil.
func (h HTTP) mayAsk(q *http.Request, e *endpoint) *failure {
	if e.name != "healthz" && h.Token != "" {
		given, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		if _, password, basic := q.BasicAuth(); basic && len(h.Pages) > 0 {
			given, ok = password, true
		}
		if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(h.Token)) != 1 {
			return &failure{Status: http.StatusUnauthorized, Where: "header Authorization",
				What: "the token is missing or wrong", Do: "send Authorization: Bearer TOKEN"}
		}
	}
	if h.Token == "" && !isHere(q.Host) { // a page of another site, by a name that leads here
		return &failure{Status: http.StatusForbidden, Where: "header Host",
			What: "without a token only this machine is answered",
			Do:   "ask for localhost, or have the server begin with a token"}
	}
	if q.Method != e.method && (e.method != http.MethodGet || q.Method != http.MethodHead) {
		return &failure{Status: http.StatusMethodNotAllowed, Where: shortened(q.Method),
			What: "the endpoint does not take this method", Do: "send " + e.method + " " + e.path}
	}
	if e.method != http.MethodPost {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil ||
		kind != "application/json" {
		return &failure{Status: http.StatusUnsupportedMediaType, Where: "header Content-Type",
			What: "it is not application/json", Do: "send JSON, and say so"}
	}
	if q.ContentLength > e.bodyMost {
		return tooLong(e)
	}
	return nil
}

// IsLoopback reports whether an address, HOST:PORT, can be reached from this machine only.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isHere(host)
}

// isHere reports whether the host of a request is this machine, by a name that leads nowhere else.
func isHere(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func tooLong(e *endpoint) *failure {
	return &failure{Status: http.StatusRequestEntityTooLarge, Where: "body",
		What: fmt.Sprintf("it is longer than %d bytes", e.bodyMost), Do: "send several requests"}
}

// newRequest returns a request of the service that answers now, and a function that ends it.
func (h HTTP) newRequest() (*request, func()) {
	if h.Follow == nil {
		r := &request{Service: h.Service}
		return r, r.end
	}
	s, answered := h.Follow.take()
	r := &request{Service: s}
	return r, func() {
		r.end()
		answered()
	}
}

// serveJSON answers a request with JSON.
func (h HTTP) serveJSON(w http.ResponseWriter, q *http.Request, e *endpoint) {
	ctx, cancel := context.WithTimeout(q.Context(), e.timeMost)
	defer cancel()
	r, end := h.newRequest()
	defer end()
	var body []byte
	var err error
	if e.method == http.MethodPost {
		body, err = r.readBody(w, q, e)
	}
	var text []byte
	if err == nil {
		text, err = r.answer(ctx, e, body)
	}
	if err != nil {
		writeFailure(w, failureOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a client that is gone needs no error
}

// answer calls an endpoint, when it is the request's turn, and returns the answer as JSON.
func (r *request) answer(ctx context.Context, e *endpoint, body []byte) ([]byte, error) {
	var out any
	err := r.inTurn(ctx, r.turns[e.name], func() (err error) {
		out, err = e.call(ctx, r, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	j := json.NewEncoder(&text)
	j.SetEscapeHTML(false)
	if err := j.Encode(out); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// bodyPart is how much of a body is read at a time. What has come is counted, so that clients which
// announce much and send little hold no memory.
const bodyPart = 32 << 10

// readBody reads the body of a request.
func (r *request) readBody(w http.ResponseWriter, q *http.Request, e *endpoint) ([]byte, error) {
	in := http.MaxBytesReader(w, q.Body, e.bodyMost)
	var body []byte
	for {
		if cap(body)-len(body) < bodyPart {
			more := max(bodyPart, cap(body)) // twice as much
			if err := r.take("a request", int64(more)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, cap(body)+more), body...)
		}
		n, err := in.Read(body[len(body) : len(body)+bodyPart])
		body = body[:len(body)+n]
		var long *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.As(err, &long):
			return nil, tooLong(e)
		case err != nil:
			w.Header().Set("Connection", "close")
			return nil, &failure{Status: http.StatusRequestTimeout, Where: "body",
				What: "it did not come in whole", Do: "send it within " + readTime.String()}
		}
	}
}

// writeFailure answers with what is wrong.
func writeFailure(w http.ResponseWriter, f *failure) {
	text, err := json.Marshal(object{"error": f})
	if err != nil { // it is text
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	if f.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if f.Status == http.StatusRequestEntityTooLarge {
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write(append(text, '\n')) // a client that is gone needs no error
}
