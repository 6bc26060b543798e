package setting

import (
	"errors"
	"fmt"
	"math"

	"gdb/sample"
)

// Encoding is the model that computes the vectors that are scored from those that are learned, if
// any.
type Encoding struct {
	// Encoder is sage, gat or rgcn, over neighbors drawn by Fanout, a number a layer; none scores
	// what is learned. EncoderLR is the rate of its weights, by Adam.
	Encoder   string  `json:"encoder,omitempty"`
	Fanout    string  `json:"fanout,omitempty"`
	EncoderLR float64 `json:"encoder_lr,omitempty"`
	// EncoderInput is what the encoder reads of a node: vectors, features or both.
	EncoderInput string `json:"encoder_input,omitempty"`
}

// EncoderNone as Encoding.Encoder scores learned vectors as they are.
const EncoderNone = "none"

// The values of Encoding.EncoderInput.
const (
	EncoderVectors  = "vectors"  // what is learned for each node
	EncoderFeatures = "features" // of the store
	EncoderBoth     = "both"     // features, and behind them what is learned
)

// EncoderInputs are the values of Encoding.EncoderInput.
var EncoderInputs = []string{EncoderVectors, EncoderFeatures, EncoderBoth}

// EncodesFeatures says whether the encoder reads features, and EncodesVectors whether it reads
// learned vectors. Runs that were made before there was a choice read these alone.
func (c *Link) EncodesFeatures() bool {
	return c.Encodes() && (c.EncoderInput == EncoderFeatures || c.EncoderInput == EncoderBoth)
}

// EncodesVectors says whether the encoder reads learned vectors.
func (c *Link) EncodesVectors() bool {
	return c.Encodes() && c.EncoderInput != EncoderFeatures
}

// Encoders are the values of Encoding.Encoder.
var Encoders = []string{EncoderNone, "sage", "gat", "rgcn"}

// Encodes says whether there is an encoder. Runs that were made before there were any have none.
func (c *Link) Encodes() bool { return c.Encoder != "" && c.Encoder != EncoderNone }

// validateEncoder reports settings that do not go together with an encoder.
func (c *Link) validateEncoder() error {
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
