package setting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/sample"
)

// EncoderNone as Link.Encoder scores learned vectors as they are.
const EncoderNone = "none"

// The values of Link.EncoderInput.
const (
	EncoderVectors  = "vectors"  // what is learned for each node
	EncoderFeatures = "features" // of the store
	EncoderBoth     = "both"     // features, and behind them what is learned
)

// EncoderInputs are the values of Link.EncoderInput.
func EncoderInputs() []string { return []string{EncoderVectors, EncoderFeatures, EncoderBoth} }

// EncodesFeatures says whether the encoder reads features, and EncodesVectors whether it reads
// learned vectors. Runs that were made before there was a choice read these alone.
func (c *Link) EncodesFeatures() bool {
	return c.Encodes() && (c.EncoderInput == EncoderFeatures || c.EncoderInput == EncoderBoth)
}

// EncodesVectors says whether the encoder reads learned vectors.
func (c *Link) EncodesVectors() bool {
	return c.Encodes() && c.EncoderInput != EncoderFeatures
}

// Encoders are the values of Link.Encoder.
func Encoders() []string { return []string{EncoderNone, "sage", "gat", "rgcn"} }

// Encodes says whether there is an encoder. Runs that were made before there were any have none.
func (c *Link) Encodes() bool { return c.Encoder != "" && c.Encoder != EncoderNone }

// validateEncoder reports settings that do not go together with an encoder.
func (c *Link) validateEncoder() error {
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
