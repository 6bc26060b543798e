// Package headers makes a build with -tags cuda say how it is done when the C compiler does not
// find cuda.h: gorgonia.org/cu looks for it where NVIDIA's toolkit puts it, and only CGO_CFLAGS can
// tell it of ours.
package headers
