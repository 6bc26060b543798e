package web

import (
	"context"
	"net/http"
)

// health says that requests are answered: the server listens when all runs are open.
type health struct {
	Status string `json:"status"`
}

func healthEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodGet, path: "/healthz", name: "healthz",
		about: "Tell that the server answers. It needs no token.",
	}, func(context.Context, *request, *nothing) (*health, error) {
		return &health{Status: "ok"}, nil
	})
}
