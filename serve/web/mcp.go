package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"gdb/internal/message"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeTools answers a client of the Model Context Protocol, which reads and writes lines of JSON,
// until in ends or ctx is cancelled. It closes neither in nor out. The tools are the endpoints that
// answer with JSON. They only read.
func (s *Service) ServeTools(ctx context.Context, in io.Reader, out io.Writer) error {
	server := mcp.NewServer(&mcp.Implementation{Name: message.Program, Version: s.opt.Version},
		&mcp.ServerOptions{Instructions: "Answers about a stored graph. Begin with info."})
	no := false
	for _, e := range endpoints {
		if e.in == nil || e.name == "healthz" {
			continue
		}
		server.AddTool(&mcp.Tool{Name: e.name, Description: e.about, InputSchema: e.in,
			OutputSchema: e.out, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true,
				IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}},
			func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.callTool(ctx, e, q.Params.Arguments), nil
			})
	}
	err := server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in),
		Writer: keptOpen{out}, MaxLineLength: 2 * bodyUsual})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keptOpen is a writer that its owner closes, and not the protocol.
type keptOpen struct{ io.Writer }

// Close does nothing.
func (keptOpen) Close() error { return nil }

// callTool answers a call with the text of an answer, or what is wrong.
func (s *Service) callTool(ctx context.Context, e *endpoint, body []byte) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, e.timeMost)
	defer cancel()
	r := &request{Service: s}
	defer r.end()
	if len(body) == 0 {
		body = []byte("{}")
	}
	text, err := r.answer(ctx, e, body)
	if err != nil {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{
			&mcp.TextContent{Text: failureOf(err).Error()}}}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}},
		StructuredContent: json.RawMessage(text)}
}
