// Package cuda computes the operations of training on a device of NVIDIA.
//
// All operations are in the order of one stream, and nothing waits for them but what reads a result
// to the host. What the host lends to a step (rows, lists, labels) is copied to page-locked memory
// first and from there to the device, so that the caller may use its own memory again at once; two
// steps may be under way that way. The lists of a step are transposed on the host when the first
// gradient asks for it.
//
// Results have the same bits for the same inputs on the same device: no sum depends on which thread
// comes first. They differ from the CPU's by rounding.
//
// The kernels are in the folder kernels, and kernels.ptx is what clang makes of them: see build.sh.
// Without the build tag cuda, the package only says that it is not there.
package cuda

// StepsStaged is how many steps have page-locked memory of their own: the host fills that of one
// while that of the one before is copied.
const StepsStaged = 2
