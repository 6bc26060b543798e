//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
#include <cublas_v2.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Error says that the driver or cuBLAS refused an operation, or that an earlier one failed.
type Error struct {
	// Operation is what was asked for.
	Operation string
	// Code is the driver's CUresult, or with BLAS cuBLAS's cublasStatus_t.
	Code int
	BLAS bool
	// Name and Text are the library's for Code.
	Name, Text string
}

// Kinds of an Error, for errors.Is.
var (
	// ErrOutOfMemory means that the device has no more memory.
	ErrOutOfMemory = errors.New("cuda: out of memory on the device")
	// ErrLost means that the device answers nothing more in this process, since a kernel or the
	// hardware failed.
	ErrLost = errors.New("cuda: the device is lost to this process")
)

// Error says what failed, why, and for a lost device what is left to do.
func (e *Error) Error() string {
	s := fmt.Sprintf("cuda: %s: %s (%d)", e.Operation, e.Name, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Is(ErrLost) {
		s += "; the device takes no more work from this process: start it again"
	}
	return s
}

// Is reports whether e is of the kind ErrOutOfMemory or ErrLost.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrOutOfMemory:
		return e.BLAS && e.Code == C.CUBLAS_STATUS_ALLOC_FAILED ||
			!e.BLAS && e.Code == C.CUDA_ERROR_OUT_OF_MEMORY
	case ErrLost:
		return !e.BLAS && slices.Contains(lostCodes[:], e.Code)
	}
	return false
}

// lostCodes are the errors after which, by the driver's documentation, the context takes no more
// work and the process must be started again.
var lostCodes = [...]int{
	C.CUDA_ERROR_DEVICE_UNAVAILABLE, C.CUDA_ERROR_ECC_UNCORRECTABLE,
	C.CUDA_ERROR_NVLINK_UNCORRECTABLE, C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT,
	C.CUDA_ERROR_CONTEXT_IS_DESTROYED, C.CUDA_ERROR_ASSERT, C.CUDA_ERROR_HARDWARE_STACK_ERROR,
	C.CUDA_ERROR_ILLEGAL_INSTRUCTION, C.CUDA_ERROR_MISALIGNED_ADDRESS,
	C.CUDA_ERROR_INVALID_ADDRESS_SPACE, C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED,
	C.CUDA_ERROR_EXTERNAL_DEVICE, C.CUDA_ERROR_UNKNOWN,
}

// CaptureRefused reports whether err means that the driver, or a library under it, cannot make the
// work a graph. The same work may succeed when it is queued piece by piece.
func CaptureRefused(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.BLAS {
		return false
	}
	return e.Code >= C.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		e.Code <= C.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD || e.Code == C.CUDA_ERROR_NOT_SUPPORTED
}

// check returns the error of a result of the driver, nil for success.
func check(operation string, result C.CUresult) error {
	if result == C.CUDA_SUCCESS {
		return nil
	}
	e := &Error{Operation: operation, Code: int(result), Name: "unknown error"}
	var s *C.char
	if C.cuGetErrorName(result, &s) == C.CUDA_SUCCESS && s != nil {
		e.Name = C.GoString(s)
	}
	if C.cuGetErrorString(result, &s) == C.CUDA_SUCCESS && s != nil {
		e.Text = C.GoString(s)
	}
	return e
}

// failed returns the error for one that gorgonia.org/cu returned, which is a CUresult as an integer
// type that it does not export.
func failed(operation string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return check(operation, C.CUresult(v.Int()))
	}
	return fmt.Errorf("cuda: %s: %w", operation, err)
}

// blasNames are the names of the states of cuBLAS, which only newer versions tell themselves.
var blasNames = map[int]string{
	C.CUBLAS_STATUS_NOT_INITIALIZED:  "CUBLAS_STATUS_NOT_INITIALIZED",
	C.CUBLAS_STATUS_ALLOC_FAILED:     "CUBLAS_STATUS_ALLOC_FAILED",
	C.CUBLAS_STATUS_INVALID_VALUE:    "CUBLAS_STATUS_INVALID_VALUE",
	C.CUBLAS_STATUS_ARCH_MISMATCH:    "CUBLAS_STATUS_ARCH_MISMATCH",
	C.CUBLAS_STATUS_MAPPING_ERROR:    "CUBLAS_STATUS_MAPPING_ERROR",
	C.CUBLAS_STATUS_EXECUTION_FAILED: "CUBLAS_STATUS_EXECUTION_FAILED",
	C.CUBLAS_STATUS_INTERNAL_ERROR:   "CUBLAS_STATUS_INTERNAL_ERROR",
	C.CUBLAS_STATUS_NOT_SUPPORTED:    "CUBLAS_STATUS_NOT_SUPPORTED",
	C.CUBLAS_STATUS_LICENSE_ERROR:    "CUBLAS_STATUS_LICENSE_ERROR",
}

// checkBLAS returns the error of a status of cuBLAS, nil for success.
func checkBLAS(operation string, status C.cublasStatus_t) error {
	if status == C.CUBLAS_STATUS_SUCCESS {
		return nil
	}
	name, known := blasNames[int(status)]
	if !known {
		name = "unknown status"
	}
	return &Error{Operation: operation, Code: int(status), BLAS: true, Name: name}
}
