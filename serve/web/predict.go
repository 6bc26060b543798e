package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
)

// The most that one request to predict may ask for.
const (
	predictMost    = 10_000 // nodes of the store
	unseenMost     = 256    // new nodes
	unseenEdgeMost = 65_536 // their neighbors in all
)

// predictIn asks for predictions.
type predictIn struct {
	Run           string   `json:"run,omitempty" jsonschema:"else the first"`
	IDs           []id     `json:"ids,omitempty" jsonschema:"nodes of the store"`
	Nodes         newNodes `json:"nodes,omitempty" jsonschema:"nodes that the store does not have"`
	Probabilities bool     `json:"probabilities,omitempty" jsonschema:"of each label"`
	Calibrated    bool     `json:"calibrated,omitempty" jsonschema:"by the run's temperature"`
}

// predictOut has predictions: of ids, in their order, and then of nodes.
type predictOut struct {
	Run         string       `json:"run"`
	Labels      []string     `json:"labels,omitempty" jsonschema:"what probabilities are of"`
	Predictions []prediction `json:"predictions"`
}

// prediction is what a run predicts of a node.
type prediction struct {
	ID            string    `json:"id,omitempty" jsonschema:"of a node of the store"`
	Prediction    any       `json:"prediction" jsonschema:"label, labels, number, or null"`
	Probabilities []float32 `json:"probabilities,omitempty"`
}

func predictEndpoint() *endpoint {
	return typed(endpoint{method: http.MethodPost, path: "/predict", name: "predict",
		about: "Predict labels of nodes by ids, or of new ones by features or columns and edges.",
	}, func(ctx context.Context, r *request, in *predictIn) (*predictOut, error) {
		run, err := r.run(in.Run)
		if err != nil {
			return nil, err
		}
		if err := r.checkPredict(run, in); err != nil {
			return nil, err
		}
		out := &predictOut{Run: run.Run(), Predictions: []prediction{}}
		if in.Probabilities {
			out.Labels = run.Labels()
		}
		add := func(all []train.Prediction, name func(i int) string) {
			for i, p := range all {
				one := prediction{ID: name(i), Prediction: p.Value}
				if in.Probabilities {
					one.Probabilities = p.Probabilities
				}
				out.Predictions = append(out.Predictions, one)
			}
		}
		nodes, err := r.nodesOf(ctx, "ids", in.IDs)
		if err != nil {
			return nil, err
		}
		known, err := run.Predict(ctx, nodes, in.Calibrated)
		if err != nil {
			return nil, err
		}
		add(known, func(i int) string { return string(in.IDs[i]) })
		if len(in.Nodes) == 0 {
			return out, nil
		}
		unseen, err := r.predictNew(ctx, run, in)
		add(unseen, func(int) string { return "" })
		return out, err
	})
}

// checkPredict returns an error if a request asks for too much or for what there is not.
func (r *request) checkPredict(run *served, in *predictIn) error {
	entries := 0
	for i := range in.Nodes {
		entries += in.Nodes[i].entries()
	}
	switch {
	case len(in.IDs)+len(in.Nodes) == 0:
		return wrong("body", "no node is asked for", `give "ids", "nodes" or both`)
	case len(in.IDs) > predictMost:
		return wrong("ids", fmt.Sprintf("%d nodes", len(in.IDs)),
			fmt.Sprintf("ask for %d at a time", predictMost))
	case entries > unseenEdgeMost:
		return wrong("nodes", fmt.Sprintf("%d neighbors", entries),
			fmt.Sprintf("give %d in all", unseenEdgeMost))
	case len(in.Nodes) > 0 && run.batcher == nil:
		return wrong("nodes", fmt.Sprintf("run %s predicts no new nodes: %v", run.Run(),
			run.PredictsUnseen()), "ask for nodes of the store, or of another run")
	}
	if in.Calibrated {
		if err := checkCalibrated(run, in); err != nil {
			return err
		}
	}
	values := int64(1)
	if in.Probabilities {
		values += int64(run.Width())
	}
	return r.take("an answer", int64(len(in.IDs)+len(in.Nodes))*(4*int64(run.Width())+
		cellBytes*values))
}

// checkCalibrated returns an error if a request asks for a temperature without use, or that the run
// does not have.
func checkCalibrated(run *served, in *predictIn) error {
	if !in.Probabilities {
		return wrong("calibrated", "it changes nothing but probabilities",
			`ask for "probabilities" too`)
	}
	if run.CheckCalibrated() != nil {
		return wrong("calibrated", "run "+run.Run()+" has no temperature for its weights",
			fmt.Sprintf("fit one by %s eval STORE --run %s --calibrate, and begin the server again",
				message.Program, run.Run()))
	}
	return nil
}

// nodesOf returns the nodes that ids name.
func (r *request) nodesOf(ctx context.Context, where string, ids []id) ([]layout.NodeID, error) {
	nodes := make([]layout.NodeID, len(ids))
	for i, name := range ids {
		v, err := r.db.Node(ctx, string(name))
		if errors.Is(err, kv.ErrNotFound) {
			return nil, &failure{Status: statusNotFound, Where: fmt.Sprintf("%s[%d]", where, i),
				What: fmt.Sprintf("no node %q", shortened(string(name))),
				Do:   r.instead(ctx, string(name))}
		}
		if err != nil {
			return nil, err
		}
		nodes[i] = v
	}
	return nodes, nil
}

// shortened returns text that is not too long for a message.
func shortened(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// instead says which id was probably meant, or how ids are written.
func (r *request) instead(ctx context.Context, name string) string {
	meant, examples := r.db.Alternatives(ctx, name)
	switch {
	case meant != "":
		return fmt.Sprintf("did you mean %q?", shortened(meant))
	case len(examples) > 0:
		return fmt.Sprintf("name a node as the source does, such as %q", shortened(examples[0]))
	}
	return "name a node of the store"
}
