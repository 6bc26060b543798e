//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
#include <stdlib.h>

enum { LAUNCH_ARGUMENTS = 64 };

// load_ptx compiles PTX for the current device. The log is the compiler's, of size bytes.
static CUresult load_ptx(CUmodule *module, const char *ptx, char *log, size_t size) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)size};
  return cuModuleLoadDataEx(module, ptx, 2, options, values);
}

// launch queues a kernel with n arguments of 8 bytes, which are copied before it returns.
static CUresult launch(CUfunction f, unsigned blocks, unsigned threads, unsigned shared,
                       CUstream stream, unsigned long long *arguments, size_t n) {
  void *pointers[LAUNCH_ARGUMENTS];
  for (size_t i = 0; i < n; i++) pointers[i] = &arguments[i];
  return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, NULL);
}

#cgo noescape launch
*/
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// jitLogBytes is room for the first errors of a compilation.
const jitLogBytes = 8 << 10

// Module holds compiled kernels.
type Module struct {
	module cu.Module
	ptx    string
}

// Load compiles PTX for the device. An error includes the compiler's log. The caller calls Close.
func (d *Device) Load(ptx string) (*Module, error) {
	text, log := C.CString(ptx), (*C.char)(C.calloc(1, jitLogBytes))
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(log))
	m := &Module{ptx: ptx}
	// cu.Module is the driver's handle and nothing else.
	err := check("compile kernels", C.load_ptx((*C.CUmodule)(unsafe.Pointer(&m.module)), text, log,
		jitLogBytes))
	if err == nil {
		return m, nil
	}
	if s := strings.TrimSpace(C.GoString(log)); s != "" {
		err = fmt.Errorf("%w\n%s", err, s)
	}
	return nil, err
}

// Close unloads the module and its functions.
func (m *Module) Close() error { return failed("unload kernels", m.module.Unload()) }

// Function is a kernel. Each of its parameters has 8 bytes.
type Function struct {
	Name       string
	function   cu.Function
	parameters int
}

// Function finds a kernel by name.
func (m *Module) Function(name string) (Function, error) {
	f, err := m.module.Function(name)
	if err != nil {
		return Function{}, failed("find kernel "+name, err)
	}
	n, err := parametersOf(m.ptx, name)
	return Function{Name: name, function: f, parameters: n}, err
}

// parametersOf returns the number of parameters of a kernel in PTX, or an error if one does not
// have 8 bytes.
func parametersOf(ptx, name string) (n int, err error) {
	_, list, found := strings.Cut(ptx, ".entry "+name+"(")
	list, _, closed := strings.Cut(list, ")")
	if !found || !closed {
		return 0, fmt.Errorf("cuda: find kernel %s: its PTX has no list of parameters", name)
	}
	for _, parameter := range strings.Split(list, ",") {
		f := strings.Fields(parameter)
		if len(f) < 3 {
			continue // a kernel without parameters
		}
		if f[0] != ".param" || !strings.HasSuffix(f[1], "64") {
			return 0, fmt.Errorf("cuda: find kernel %s: its parameter %q is not of 8 bytes", name,
				strings.TrimSpace(parameter))
		}
		n++
	}
	return n, nil
}

// Argument is the value of a kernel's parameter.
type Argument uint64

// Int returns the value of a parameter of type long long.
func Int[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](v T) Argument { return Argument(v) }

// Float returns the value of a parameter of type double.
func Float(v float64) Argument { return Argument(math.Float64bits(v)) }

// Pointer returns the value of a parameter of a pointer type.
func Pointer(p DevicePtr) Argument { return Argument(p) }

// Launch queues a kernel: blocks of threads, each block with sharedBytes of dynamic shared memory.
// There must be as many arguments as parameters.
//
// It does not use gorgonia.org/cu, which makes Go write pointers into C memory that is not
// initialized: the collector takes what was there for a pointer being overwritten, and ends the
// process if it looks like one of Go's.
func (s *Stream) Launch(f Function, blocks, threads, sharedBytes int, arguments ...Argument) error {
	if len(arguments) != f.parameters {
		panic(fmt.Sprintf("BUG: kernel %s has %d parameters, not %d", f.Name, f.parameters,
			len(arguments)))
	}
	if len(arguments) > C.LAUNCH_ARGUMENTS {
		panic(fmt.Sprintf("BUG: kernel %s has more than %d parameters", f.Name,
			C.LAUNCH_ARGUMENTS))
	}
	// cu.Function is the driver's handle and nothing else.
	handle := *(*C.CUfunction)(unsafe.Pointer(&f.function))
	result := C.launch(handle, C.uint(blocks), C.uint(threads), C.uint(sharedBytes), s.handle(),
		(*C.ulonglong)(unsafe.Pointer(unsafe.SliceData(arguments))), C.size_t(len(arguments)))
	if result != C.CUDA_SUCCESS {
		return check(fmt.Sprintf("launch %s over %d blocks of %d threads", f.Name, blocks,
			threads), result)
	}
	return nil
}
