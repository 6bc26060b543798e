package web

import (
	"context"
	"net/http"
	"strings"

	"gdb/internal/message"
)

// openAPIEndpoint describes all endpoints.
func openAPIEndpoint() *endpoint {
	return &endpoint{method: http.MethodGet, path: "/openapi.json", name: "openapi",
		about: "This description of all endpoints, as OpenAPI 3.1.",
		call: func(_ context.Context, r *request, _ []byte) (any, error) {
			return openAPI(r.opt.Version), nil
		}}
}

// object is a JSON object.
type object = map[string]any

// openAPI returns the OpenAPI document of the endpoints.
func openAPI(version string) object {
	paths := object{}
	for _, e := range endpoints {
		op := object{"operationId": e.name, "summary": e.about}
		answer := object{"description": "the answer"}
		switch {
		case e.plain != nil:
			answer["content"] = object{"text/plain": object{}}
		case e.out != nil:
			answer["content"] = object{"application/json": object{"schema": e.out}}
		default:
			answer["content"] = object{"application/json": object{}}
		}
		op["responses"] = object{"200": answer, "default": object{"description": "what is wrong",
			"content": object{"application/json": object{"schema": object{
				"$ref": "#/components/schemas/Error"}}}}}
		if e.method == http.MethodPost {
			op["requestBody"] = object{"required": true,
				"content": object{"application/json": object{"schema": e.in}}}
		}
		if e.name == "healthz" {
			op["security"] = []any{}
		}
		paths[e.path] = object{strings.ToLower(e.method): op}
	}
	text := object{"type": "string"}
	return object{"openapi": "3.1.0",
		"info":     object{"title": message.Program + " serve", "version": version},
		"security": []any{object{"token": []string{}}, object{}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"schemas": object{"Error": object{"type": "object", "properties": object{
				"error": object{"type": "object", "required": []string{"what", "do"},
					"properties": object{"what": text, "where": text, "do": text}}}}}}}
}
