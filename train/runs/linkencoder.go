package runs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/sample"
	"gdb/train/model"
)

// EncoderNone as LinkSettings.Encoder scores learned vectors as they are.
const EncoderNone = "none"

// The values of LinkSettings.EncoderInput.
const (
	EncoderVectors  = "vectors"  // what is learned for each node
	EncoderFeatures = "features" // of the store
	EncoderBoth     = "both"     // features, and behind them what is learned
)

// EncoderInputs are the values of LinkSettings.EncoderInput.
func EncoderInputs() []string { return []string{EncoderVectors, EncoderFeatures, EncoderBoth} }

// EncodesFeatures says whether the encoder reads features, and EncodesVectors whether it reads
// learned vectors. Runs that were made before there was a choice read these alone.
func (c *LinkSettings) EncodesFeatures() bool {
	return c.Encodes() && (c.EncoderInput == EncoderFeatures || c.EncoderInput == EncoderBoth)
}

// EncodesVectors says whether the encoder reads learned vectors.
func (c *LinkSettings) EncodesVectors() bool {
	return c.Encodes() && c.EncoderInput != EncoderFeatures
}

// Encoders are the values of LinkSettings.Encoder.
func Encoders() []string { return []string{EncoderNone, "sage", "gat", "rgcn"} }

// Encodes says whether there is an encoder. Runs that were made before there were any have none.
func (c *LinkSettings) Encodes() bool { return c.Encoder != "" && c.Encoder != EncoderNone }

// validateEncoder reports settings that do not go together with an encoder.
func (c *LinkSettings) validateEncoder() error {
	if c.Encoder != "" && !slices.Contains(Encoders(), c.Encoder) {
		return fmt.Errorf("train: unknown encoder %q: known are %s", c.Encoder,
			strings.Join(Encoders(), ", "))
	}
	if c.EncoderInput != "" && !slices.Contains(EncoderInputs(), c.EncoderInput) {
		return fmt.Errorf("train: unknown encoder-input %q: known are %s", c.EncoderInput,
			strings.Join(EncoderInputs(), ", "))
	}
	if !c.Encodes() {
		return nil
	}
	fanout, err := sample.ParseFanout(c.Fanout)
	switch {
	case err != nil:
		return fmt.Errorf("train: fanout %q: %w", c.Fanout, err)
	case len(fanout) == 0:
		return errors.New("train: an encoder needs a --fanout: a number a layer")
	case c.Negatives == NegativesAll:
		return errors.New("train: --encoder needs drawn negatives: all nodes would be encoded in " +
			"each step")
	case c.FilterNegatives:
		return errors.New("train: --filter-negatives does not work with an encoder yet: leave it " +
			"out")
	case !(c.EncoderLR > 0) || math.IsInf(c.EncoderLR, 0):
		return fmt.Errorf("train: encoder-lr %g: give a positive number", c.EncoderLR)
	}
	return nil
}

// EncoderSpec is the model of the encoder over a graph: each layer has the width of the vectors,
// and adds its input to its output.
func (c *LinkSettings) EncoderSpec(m *kv.Meta) (*model.Spec, error) {
	a, err := model.Find(c.Encoder)
	if err != nil {
		return nil, fmt.Errorf("train: encoder: %w", err)
	}
	fanout, err := sample.ParseFanout(c.Fanout)
	if err != nil {
		return nil, fmt.Errorf("train: fanout %q: %w", c.Fanout, err)
	}
	s := &model.Spec{Architecture: a, Options: model.Options{Residual: true}}
	if c.Encoder == "rgcn" {
		s.Relations = len(m.EdgeTypes)
	}
	s.Dims = []int{0}
	if c.EncodesVectors() {
		s.NodeEmbedding, s.Dims[0] = c.Dim, c.Dim
	}
	if c.EncodesFeatures() {
		if len(m.Features) == 0 {
			return nil, errors.New("train: the store has no features: leave --encoder-input out")
		}
		s.Dims[0] += FeatureDim(m)
	}
	for range fanout {
		s.Dims = append(s.Dims, c.Dim)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("train: encoder %s: %w", c.Encoder, err)
	}
	return s, nil
}

// NoVectorsYet is the error of a run with an encoder before its first evaluation.
func NoVectorsYet(run string) error {
	return fmt.Errorf("train: run %s has not been evaluated yet, and the vectors of its encoder "+
		"are made then: train on, or with a smaller --eval-every", run)
}
