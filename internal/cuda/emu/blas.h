// The products of cuBLAS, column-major, with sums in double.
#pragma once
#include "queue.h"

struct cublasContext {
  CUstream stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

static std::set<cublasHandle_t> handles;

// A factor or a result: values of float32 or bfloat16, a column every stride of them.
struct Matrix {
  void *values;
  bool bf16;
  int stride;

  float at(int row, int column) const {
    size_t i = (size_t)column * stride + row;
    if (!bf16) return ((const float *)values)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)values)[i] << 16;
    float v;
    memcpy(&v, &bits, 4);
    return v;
  }

  void set(int row, int column, float v) const {
    size_t i = (size_t)column * stride + row;
    if (!bf16) {
      ((float *)values)[i] = v;
      return;
    }
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits += 0x7fff + (bits >> 16 & 1);  // to the nearest, halves to even
    ((uint16_t *)values)[i] = (uint16_t)(bits >> 16);
  }
};

// to_tf32 rounds a factor to the 10 bits behind the point that tensor cores take.
static float to_tf32(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
  memcpy(&v, &bits, 4);
  return v;
}

struct Product {
  bool ta, tb, tf32;
  int m, n, k;
  float alpha, beta;
  Matrix a, b, c;

  // right says whether columns are at least as far apart as they are long.
  bool right() const {
    return m >= 0 && n >= 0 && k >= 0 && a.stride >= std::max(1, ta ? k : m) &&
           b.stride >= std::max(1, tb ? n : k) && c.stride >= std::max(1, m);
  }

  void run() const {
    std::vector<double> column(m);
    std::vector<float> factor((size_t)m * k);
    for (int p = 0; p < k; p++)
      for (int i = 0; i < m; i++) {
        float v = ta ? a.at(p, i) : a.at(i, p);
        factor[(size_t)p * m + i] = tf32 ? to_tf32(v) : v;
      }
    for (int j = 0; j < n; j++) {
      std::fill(column.begin(), column.end(), 0);
      for (int p = 0; p < k; p++) {
        float v = tb ? b.at(j, p) : b.at(p, j);
        if (tf32) v = to_tf32(v);
        for (int i = 0; i < m; i++) column[i] += (double)v * factor[(size_t)p * m + i];
      }
      for (int i = 0; i < m; i++)
        c.set(i, j, alpha * (float)column[i] + (beta == 0 ? 0 : beta * c.at(i, j)));
    }
  }
};

// queue_products queues products that were asked for by one call.
static cublasStatus_t queue_products(cublasHandle_t h, const std::vector<Product> &all) {
  if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (lost != CUDA_SUCCESS || due("fail_blas")) return CUBLAS_STATUS_EXECUTION_FAILED;
  for (auto &p : all)
    if (!p.right()) return CUBLAS_STATUS_INVALID_VALUE;
  counts["products"] += (long long)all.size();
  if (!h->stream || !h->stream->capture) counts["launches"]++;
  CUresult r = enqueue(h->stream, {"product", [=] {
                                     for (auto &p : all) p.run();
                                     return CUDA_SUCCESS;
                                   }});
  return r == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static Matrix matrix(const void *p, int stride, bool bf16 = false) {
  return {(void *)p, bf16, stride};
}

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t *h) {
  std::lock_guard<std::mutex> hold(lock);
  if (due("fail_alloc")) return CUBLAS_STATUS_ALLOC_FAILED;
  handles.insert(*h = new cublasContext);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t h) {
  std::lock_guard<std::mutex> hold(lock);
  if (!handles.erase(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete h;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) {
  std::lock_guard<std::mutex> hold(lock);
  if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->stream = s;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t math) {
  std::lock_guard<std::mutex> hold(lock);
  if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->math = math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *p, size_t bytes) {
  std::lock_guard<std::mutex> hold(lock);
  if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  return on_device((CUdeviceptr)p, bytes) && (CUdeviceptr)p % 256 == 0
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGetVersion(cublasHandle_t h, int *version) {
  std::lock_guard<std::mutex> hold(lock);
  *version = 120400;
  return handles.count(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k,
                                         const float *alpha, const float *a, int lda,
                                         long long step_a, const float *b, int ldb,
                                         long long step_b, const float *beta, float *c, int ldc,
                                         long long step_c, int count) {
  std::lock_guard<std::mutex> hold(lock);
  std::vector<Product> all;
  bool tf32 = handles.count(h) && h->math == CUBLAS_TF32_TENSOR_OP_MATH;
  for (int i = 0; i < count; i++)
    all.push_back({ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, tf32, m, n, k, *alpha, *beta,
                   matrix(a + i * step_a, lda), matrix(b + i * step_b, ldb),
                   matrix(c + i * step_c, ldc)});
  return queue_products(h, all);
}

cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                           int n, int k, const float *alpha, const float *a, int lda,
                           const float *b, int ldb, const float *beta, float *c, int ldc) {
  return cublasSgemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc,
                                   0, 1);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType a_type,
                            int lda, const void *b, cudaDataType b_type, int ldb,
                            const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  std::lock_guard<std::mutex> hold(lock);
  if (a_type != b_type || compute != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return queue_products(
      h, {{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, false, m, n, k, *(const float *)alpha,
           *(const float *)beta, matrix(a, lda, a_type == CUDA_R_16BF),
           matrix(b, ldb, b_type == CUDA_R_16BF), matrix(c, ldc, c_type == CUDA_R_16BF)}});
}

}  // extern "C"
