//go:build cuda && cgo && linux

package cuda

/*
#include <cublas_v2.h>

static cublasOperation_t operation(int transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static cublasStatus_t sgemm(cublasHandle_t h, int ta, int tb, int m, int n, int k, float alpha,
                            CUdeviceptr a, int lda, CUdeviceptr b, int ldb, float beta,
                            CUdeviceptr c, int ldc) {
  return cublasSgemm(h, operation(ta), operation(tb), m, n, k, &alpha, (const float *)a, lda,
                     (const float *)b, ldb, &beta, (float *)c, ldc);
}

static cublasStatus_t sgemm_batched(cublasHandle_t h, int ta, int tb, int m, int n, int k,
                                    float alpha, CUdeviceptr a, int lda, long long stride_a,
                                    CUdeviceptr b, int ldb, long long stride_b, float beta,
                                    CUdeviceptr c, int ldc, long long stride_c, int count) {
  return cublasSgemmStridedBatched(h, operation(ta), operation(tb), m, n, k, &alpha,
                                   (const float *)a, lda, stride_a, (const float *)b, ldb,
                                   stride_b, &beta, (float *)c, ldc, stride_c, count);
}

static cublasStatus_t gemm_bf16(cublasHandle_t h, int ta, int tb, int m, int n, int k, float alpha,
                                CUdeviceptr a, int lda, CUdeviceptr b, int ldb, float beta,
                                CUdeviceptr c, int c_is_bf16, int ldc) {
  return cublasGemmEx(h, operation(ta), operation(tb), m, n, k, &alpha, (const void *)a,
                      CUDA_R_16BF, lda, (const void *)b, CUDA_R_16BF, ldb, &beta, (void *)c,
                      c_is_bf16 ? CUDA_R_16BF : CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t set_workspace(cublasHandle_t h, CUdeviceptr p, size_t bytes) {
  return cublasSetWorkspace(h, (void *)p, bytes);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"
	cublas "gorgonia.org/cu/blas"
)

// BLAS multiplies matrices on a stream. Matrices are column-major, as in cuBLAS. There, a row-major
// matrix is its transpose, so the row-major product C = A·B is computed as the product of B and A.
//
// The handle comes from gorgonia.org/cu/blas. Its methods are not used, since they take slices of
// the host, and do nothing more after a failure.
type BLAS struct{ standard *cublas.Standard }

// Math says how products of float32 are computed.
type Math int

// The ways to compute.
const (
	// Default is float32 throughout.
	Default Math = iota
	// TF32 rounds factors to 10 bits behind the point, for tensor cores, and adds in float32.
	TF32
	// Pedantic is float32 throughout, in the order of the definition.
	Pedantic
)

// NewBLAS starts cuBLAS on a stream.
func (d *Device) NewBLAS(s *Stream) (*BLAS, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	b := &BLAS{standard: new(cublas.Standard)}
	if err := b.standard.Init(); err != nil {
		var status cublas.Status
		if errors.As(err, &status) {
			return nil, checkBLAS("start cuBLAS", C.cublasStatus_t(status))
		}
		return nil, fmt.Errorf("cuda: start cuBLAS: %w", err)
	}
	if err := b.SetStream(s); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func init() {
	// handle reads the first field of a type that another module owns.
	f := reflect.TypeFor[cublas.Standard]().Field(0)
	if f.Name != "h" || f.Type.Kind() != reflect.Pointer {
		panic("BUG: gorgonia.org/cu/blas keeps its handle elsewhere")
	}
}

// handle returns cuBLAS's handle, which gorgonia.org/cu/blas v0.9.6 keeps in its first field.
func (b *BLAS) handle() C.cublasHandle_t {
	return *(*C.cublasHandle_t)(unsafe.Pointer(b.standard))
}

// SetStream queues products on this stream from now on. It drops a workspace that was set.
func (b *BLAS) SetStream(s *Stream) error {
	return checkBLAS("set the stream of cuBLAS", C.cublasSetStream(b.handle(),
		C.cudaStream_t(s.handle())))
}

// SetMath sets how Sgemm and SgemmBatched compute.
func (b *BLAS) SetMath(m Math) error {
	mode := [...]C.cublasMath_t{Default: C.CUBLAS_DEFAULT_MATH, TF32: C.CUBLAS_TF32_TENSOR_OP_MATH,
		Pedantic: C.CUBLAS_PEDANTIC_MATH}[m]
	return checkBLAS("set the precision of cuBLAS", C.cublasSetMathMode(b.handle(), mode))
}

// SetWorkspace gives cuBLAS device memory to work in, aligned to 256 bytes, instead of memory that
// it allocates. Graphs that were captured with it need it for as long as they exist.
func (b *BLAS) SetWorkspace(p DevicePtr, bytes int64) error {
	return checkBLAS("set the workspace of cuBLAS", C.set_workspace(b.handle(), C.CUdeviceptr(p),
		C.size_t(bytes)))
}

// Version returns the version of cuBLAS: 10000 * major + 100 * minor + patch.
func (b *BLAS) Version() (int, error) {
	var v C.int
	err := checkBLAS("version of cuBLAS", C.cublasGetVersion(b.handle(), &v))
	return int(v), err
}

// Operand is a matrix in the device's memory. Stride is the number of values from the beginning of
// a column to the beginning of the next. If Transposed is set, the factor is its transpose.
type Operand struct {
	Memory     DevicePtr
	Stride     int
	Transposed bool
}

// Sgemm queues c = alpha*a·b + beta*c in float32: a has m rows, b n columns, c is m x n, and the
// sums are over k. With beta 0 c is not read.
//
//lint:parameters those of the library's function
func (b *BLAS) Sgemm(m, n, k int, alpha float32, x, y Operand, beta float32, c Operand) error {
	status := C.sgemm(b.handle(), flag(x.Transposed), flag(y.Transposed), C.int(m), C.int(n),
		C.int(k), C.float(alpha), C.CUdeviceptr(x.Memory), C.int(x.Stride),
		C.CUdeviceptr(y.Memory), C.int(y.Stride), C.float(beta), C.CUdeviceptr(c.Memory),
		C.int(c.Stride))
	return product("sgemm", m, n, k, status)
}

// Steps are the numbers of values between a matrix and the next in a batch.
type Steps struct{ A, B, C int }

// SgemmBatched queues count products as Sgemm does, of matrices that are Steps apart.
//
//lint:parameters those of the library's function
func (b *BLAS) SgemmBatched(m, n, k int, alpha float32, x, y Operand, beta float32, c Operand,
	steps Steps, count int) error {
	status := C.sgemm_batched(b.handle(), flag(x.Transposed), flag(y.Transposed), C.int(m),
		C.int(n), C.int(k), C.float(alpha), C.CUdeviceptr(x.Memory), C.int(x.Stride),
		C.longlong(steps.A), C.CUdeviceptr(y.Memory), C.int(y.Stride), C.longlong(steps.B),
		C.float(beta), C.CUdeviceptr(c.Memory), C.int(c.Stride), C.longlong(steps.C), C.int(count))
	return product(fmt.Sprintf("%d batched sgemm", count), m, n, k, status)
}

// GemmBF16 queues c = alpha*a·b + beta*c of factors in bfloat16, with sums in float32; c is in
// bfloat16 or in float32.
//
//lint:parameters those of the library's function
func (b *BLAS) GemmBF16(m, n, k int, alpha float32, x, y Operand, beta float32, c Operand,
	resultBF16 bool) error {
	status := C.gemm_bf16(b.handle(), flag(x.Transposed), flag(y.Transposed), C.int(m), C.int(n),
		C.int(k), C.float(alpha), C.CUdeviceptr(x.Memory), C.int(x.Stride),
		C.CUdeviceptr(y.Memory), C.int(y.Stride), C.float(beta), C.CUdeviceptr(c.Memory),
		flag(resultBF16), C.int(c.Stride))
	return product("bf16 gemm", m, n, k, status)
}

// product returns the error of a product's status, and formats its shapes only if there is one.
// cuBLAS does not say that the device was lost, but the driver does, whatever it is asked.
func product(name string, m, n, k int, status C.cublasStatus_t) error {
	if status == C.CUBLAS_STATUS_SUCCESS {
		return nil
	}
	operation := fmt.Sprintf("%s %d x %d x %d", name, m, n, k)
	if _, _, err := cu.MemInfo(); err != nil {
		return failed(operation, err)
	}
	return checkBLAS(operation, status)
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Close ends cuBLAS's handle.
func (b *BLAS) Close() error {
	err := b.standard.Close()
	var status cublas.Status
	if errors.As(err, &status) {
		return checkBLAS("end cuBLAS", C.cublasStatus_t(status))
	}
	return err
}
