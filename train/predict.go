package train

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// PredictConfig says what to predict.
type PredictConfig struct {
	Limits
	// Run is the run whose best weights predict.
	Run string
	// Split is train, val, test, or a stored set by its whole name; "" is every node.
	Split string
	// Probabilities asks for the probability of each class in addition.
	Probabilities bool
}

// PredictionHeader describes the predictions that follow.
type PredictionHeader struct {
	Classes       []string // as given at ingest
	Probabilities bool
	Multi         bool // predictions are labels joined by ';'
	Numbers       bool // predictions are numbers
	IntegerIDs    bool
	Nodes         uint64
	// LongestID is the length of the longest id in characters, if the writer asked for it.
	LongestID int
}

// Predictions holds some rows, in ascending order of internal ids. It is valid during the call.
type Predictions struct {
	IDs    []string
	Labels []string
	// Probabilities is (len(IDs), classes), or nil.
	Probabilities []float32
}

// PredictionWriter writes predictions to a file, which appears whole on Commit, or not at all.
type PredictionWriter interface {
	// WantsLongestID asks for PredictionHeader.LongestID, which costs reading all ids first.
	WantsLongestID() bool
	Begin(h PredictionHeader) error
	Write(p *Predictions) error
	Commit() error
	// Abort removes what was written. After Commit it does nothing.
	Abort() error
}

// Predict computes the predictions for the nodes of a split, or for all nodes, exactly and in
// bounded memory, and passes them to w under the user's own ids and labels.
func Predict(ctx context.Context, store *layout.Store, dev blockdev.Device, c PredictConfig,
	w PredictionWriter) (err error) {
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, split: c.Split, limits: c.Limits,
		withIDs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort(), t.Close()) }()
	if _, ok := t.in.task.(task.Probable); c.Probabilities && !ok {
		return errors.New("train: predict: labels that are numbers have no probabilities: leave " +
			"--probabilities out")
	}
	p := &predictor{in: t.in, ids: t.ids, w: w, classes: t.in.Meta.Labels.Classes,
		probabilities: c.Probabilities}
	if err := p.begin(ctx, t.set); err != nil {
		return err
	}
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	f := t.in.inference(t.be, t.model, t.scratchDir(predictJob))
	err = f.Run(ctx, t.set, func(nodes []sample.NodeID, logits []float32) error {
		return p.write(ctx, nodes, logits)
	})
	if err != nil {
		return fmt.Errorf("train: predict with run %s: %w", c.Run, err)
	}
	return w.Commit()
}

// nodes loads train, val or test of the run's column, or a set by its whole name.
func (t *trained) nodes(ctx context.Context, split string) (*roaring.Bitmap, error) {
	base, column := split, t.cfg.Split
	if !slices.Contains([]string{"train", "val", "test"}, split) {
		base, column, _ = strings.Cut(split, "@")
	}
	set, _, err := loader.LoadSplit(ctx, t.in.Store, base, column, t.in.Budget)
	return set, err
}

// predictor turns logits into rows of a writer.
type predictor struct {
	in            *inputs
	ids           ids.Dictionary
	w             PredictionWriter
	classes       []string
	probabilities bool
	out           Predictions
}

// begin passes the header to the writer.
func (p *predictor) begin(ctx context.Context, set *roaring.Bitmap) error {
	h := PredictionHeader{Classes: p.classes, Probabilities: p.probabilities,
		Multi: p.in.Labels.Multi(), Numbers: p.in.Labels.Numbers(),
		IntegerIDs: p.in.Meta.IDs.Kind != kv.IDsString, Nodes: p.in.Meta.Nodes}
	if set != nil {
		h.Nodes = set.GetCardinality()
	}
	if p.w.WantsLongestID() && !h.IntegerIDs {
		n, err := p.longestID(ctx, set)
		if err != nil {
			return err
		}
		h.LongestID = n
	}
	return p.w.Begin(h)
}

// predictRows is how many ids are read at a time.
const predictRows = 8192

// longestID returns the length of the longest id of a set. It reads all its ids.
func (p *predictor) longestID(ctx context.Context, set *roaring.Bitmap) (int, error) {
	longest, next := 0, sample.NodesOf(set, p.in.Meta.Nodes)
	for buf := make([]sample.NodeID, predictRows); ; {
		nodes := next(buf)
		if len(nodes) == 0 {
			return longest, nil
		}
		var err error
		if p.out.IDs, err = p.ids.External(ctx, nodes, p.out.IDs[:0]); err != nil {
			return 0, fmt.Errorf("train: read ids: %w", err)
		}
		for _, id := range p.out.IDs {
			longest = max(longest, utf8.RuneCountInString(id))
		}
	}
}

// write passes the predictions for some nodes to the writer.
func (p *predictor) write(ctx context.Context, nodes []sample.NodeID,
	logits []float32) (err error) {
	if err := task.CheckOutput(nodes, logits); err != nil {
		return err
	}
	if p.out.IDs, err = p.ids.External(ctx, nodes, p.out.IDs[:0]); err != nil {
		return fmt.Errorf("read ids: %w", err)
	}
	n := p.in.task.Outputs()
	p.out.Labels = p.out.Labels[:0]
	for i := range nodes {
		p.out.Labels = append(p.out.Labels, p.in.task.Label(logits[i*n:(i+1)*n]))
	}
	if t, ok := p.in.task.(task.Probable); ok && p.probabilities {
		p.out.Probabilities = mem.Resized(p.out.Probabilities, len(logits))
		for i := range nodes {
			t.Probabilities(p.out.Probabilities[i*n:(i+1)*n], logits[i*n:(i+1)*n])
		}
	}
	return p.w.Write(&p.out)
}

// newToken returns a random name.
func newToken() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}
