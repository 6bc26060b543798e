/*
 * The entry points of cuBLAS as BLAS(name, arguments); all return cublasStatus_t.
 */
BLAS(cublasCaxpy_v2, (cublasHandle_t, int, const cuComplex *, const cuComplex *, int, cuComplex *,
     int))
BLAS(cublasCcopy_v2, (cublasHandle_t, int, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCdgmm, (cublasHandle_t, cublasSideMode_t, int, int, const cuComplex *, int, const
     cuComplex *, int, cuComplex *, int))
BLAS(cublasCdotc_v2, (cublasHandle_t, int, const cuComplex *, int, const cuComplex *, int,
     cuComplex *))
BLAS(cublasCdotu_v2, (cublasHandle_t, int, const cuComplex *, int, const cuComplex *, int,
     cuComplex *))
BLAS(cublasCgbmv_v2, (cublasHandle_t, cublasOperation_t, int, int, int, int, const cuComplex *,
     const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCgeam, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const cuComplex
     *, const cuComplex *, int, const cuComplex *, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCgemm3m, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *,
     int))
BLAS(cublasCgemm_v2, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *,
     int))
BLAS(cublasCgemv_v2, (cublasHandle_t, cublasOperation_t, int, int, const cuComplex *, const
     cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCgerc_v2, (cublasHandle_t, int, int, const cuComplex *, const cuComplex *, int, const
     cuComplex *, int, cuComplex *, int))
BLAS(cublasCgeru_v2, (cublasHandle_t, int, int, const cuComplex *, const cuComplex *, int, const
     cuComplex *, int, cuComplex *, int))
BLAS(cublasChbmv_v2, (cublasHandle_t, cublasFillMode_t, int, int, const cuComplex *, const
     cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasChemm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *,
     int))
BLAS(cublasChemv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCher2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCher2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const float *, cuComplex *,
     int))
BLAS(cublasCher_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const cuComplex *, int,
     cuComplex *, int))
BLAS(cublasCherk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const float
     *, const cuComplex *, int, const float *, cuComplex *, int))
BLAS(cublasCherkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const cuComplex
     *, const cuComplex *, int, const cuComplex *, int, const float *, cuComplex *, int))
BLAS(cublasChpmv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasChpr2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, const cuComplex *, int, cuComplex *))
BLAS(cublasChpr_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const cuComplex *, int,
     cuComplex *))
BLAS(cublasCreate_v2, (cublasHandle_t *))
BLAS(cublasCrot_v2, (cublasHandle_t, int, cuComplex *, int, cuComplex *, int, const float *, const
     cuComplex *))
BLAS(cublasCscal_v2, (cublasHandle_t, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCsscal_v2, (cublasHandle_t, int, const float *, cuComplex *, int))
BLAS(cublasCswap_v2, (cublasHandle_t, int, cuComplex *, int, cuComplex *, int))
BLAS(cublasCsymm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *,
     int))
BLAS(cublasCsymv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCsyr2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCsyr2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *,
     int))
BLAS(cublasCsyr_v2, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, const cuComplex *,
     int, cuComplex *, int))
BLAS(cublasCsyrk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuComplex *, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCsyrkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const cuComplex
     *, const cuComplex *, int, const cuComplex *, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCtbmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCtbsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCtpmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuComplex *, cuComplex *, int))
BLAS(cublasCtpsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuComplex *, cuComplex *, int))
BLAS(cublasCtpttr, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, cuComplex *, int))
BLAS(cublasCtrmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuComplex *, int, cuComplex *, int))
BLAS(cublasCtrsm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
     cublasDiagType_t, int, int, const cuComplex *, const cuComplex *, int, cuComplex *, int))
BLAS(cublasCtrsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuComplex *, int, cuComplex *, int))
BLAS(cublasCtrttp, (cublasHandle_t, cublasFillMode_t, int, const cuComplex *, int, cuComplex *))
BLAS(cublasDasum_v2, (cublasHandle_t, int, const double *, int, double *))
BLAS(cublasDaxpy_v2, (cublasHandle_t, int, const double *, const double *, int, double *, int))
BLAS(cublasDcopy_v2, (cublasHandle_t, int, const double *, int, double *, int))
BLAS(cublasDdgmm, (cublasHandle_t, cublasSideMode_t, int, int, const double *, int, const double
     *, int, double *, int))
BLAS(cublasDdot_v2, (cublasHandle_t, int, const double *, int, const double *, int, double *))
BLAS(cublasDestroy_v2, (cublasHandle_t))
BLAS(cublasDgbmv_v2, (cublasHandle_t, cublasOperation_t, int, int, int, int, const double *, const
     double *, int, const double *, int, const double *, double *, int))
BLAS(cublasDgeam, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const double *,
     const double *, int, const double *, const double *, int, double *, int))
BLAS(cublasDgemm_v2, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     double *, const double *, int, const double *, int, const double *, double *, int))
BLAS(cublasDgemv_v2, (cublasHandle_t, cublasOperation_t, int, int, const double *, const double *,
     int, const double *, int, const double *, double *, int))
BLAS(cublasDger_v2, (cublasHandle_t, int, int, const double *, const double *, int, const double
     *, int, double *, int))
BLAS(cublasDnrm2_v2, (cublasHandle_t, int, const double *, int, double *))
BLAS(cublasDrot_v2, (cublasHandle_t, int, double *, int, double *, int, const double *, const
     double *))
BLAS(cublasDrotg_v2, (cublasHandle_t, double *, double *, double *, double *))
BLAS(cublasDrotm_v2, (cublasHandle_t, int, double *, int, double *, int, const double *))
BLAS(cublasDrotmg_v2, (cublasHandle_t, double *, double *, double *, const double *, double *))
BLAS(cublasDsbmv_v2, (cublasHandle_t, cublasFillMode_t, int, int, const double *, const double *,
     int, const double *, int, const double *, double *, int))
BLAS(cublasDscal_v2, (cublasHandle_t, int, const double *, double *, int))
BLAS(cublasDspmv_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, const
     double *, int, const double *, double *, int))
BLAS(cublasDspr2_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, int,
     const double *, int, double *))
BLAS(cublasDspr_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, int,
     double *))
BLAS(cublasDswap_v2, (cublasHandle_t, int, double *, int, double *, int))
BLAS(cublasDsymm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const double
     *, const double *, int, const double *, int, const double *, double *, int))
BLAS(cublasDsymv_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, int,
     const double *, int, const double *, double *, int))
BLAS(cublasDsyr2_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, int,
     const double *, int, double *, int))
BLAS(cublasDsyr2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const double
     *, const double *, int, const double *, int, const double *, double *, int))
BLAS(cublasDsyr_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const double *, int,
     double *, int))
BLAS(cublasDsyrk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const double
     *, const double *, int, const double *, double *, int))
BLAS(cublasDsyrkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const double *,
     const double *, int, const double *, int, const double *, double *, int))
BLAS(cublasDtbmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const double *, int, double *, int))
BLAS(cublasDtbsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const double *, int, double *, int))
BLAS(cublasDtpmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const double *, double *, int))
BLAS(cublasDtpsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const double *, double *, int))
BLAS(cublasDtpttr, (cublasHandle_t, cublasFillMode_t, int, const double *, double *, int))
BLAS(cublasDtrmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const double *, int, double *, int))
BLAS(cublasDtrsm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
     cublasDiagType_t, int, int, const double *, const double *, int, double *, int))
BLAS(cublasDtrsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const double *, int, double *, int))
BLAS(cublasDtrttp, (cublasHandle_t, cublasFillMode_t, int, const double *, int, double *))
BLAS(cublasDzasum_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, double *))
BLAS(cublasDznrm2_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, double *))
BLAS(cublasGemmEx, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     void *, const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void
     *, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t))
BLAS(cublasGetVersion_v2, (cublasHandle_t, int *))
BLAS(cublasIcamax_v2, (cublasHandle_t, int, const cuComplex *, int, int *))
BLAS(cublasIcamin_v2, (cublasHandle_t, int, const cuComplex *, int, int *))
BLAS(cublasIdamax_v2, (cublasHandle_t, int, const double *, int, int *))
BLAS(cublasIdamin_v2, (cublasHandle_t, int, const double *, int, int *))
BLAS(cublasIsamax_v2, (cublasHandle_t, int, const float *, int, int *))
BLAS(cublasIsamin_v2, (cublasHandle_t, int, const float *, int, int *))
BLAS(cublasIzamax_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, int *))
BLAS(cublasIzamin_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, int *))
BLAS(cublasSasum_v2, (cublasHandle_t, int, const float *, int, float *))
BLAS(cublasSaxpy_v2, (cublasHandle_t, int, const float *, const float *, int, float *, int))
BLAS(cublasScasum_v2, (cublasHandle_t, int, const cuComplex *, int, float *))
BLAS(cublasScnrm2_v2, (cublasHandle_t, int, const cuComplex *, int, float *))
BLAS(cublasScopy_v2, (cublasHandle_t, int, const float *, int, float *, int))
BLAS(cublasSdgmm, (cublasHandle_t, cublasSideMode_t, int, int, const float *, int, const float *,
     int, float *, int))
BLAS(cublasSdot_v2, (cublasHandle_t, int, const float *, int, const float *, int, float *))
BLAS(cublasSetMathMode, (cublasHandle_t, cublasMath_t))
BLAS(cublasSetStream_v2, (cublasHandle_t, cudaStream_t))
BLAS(cublasSetWorkspace_v2, (cublasHandle_t, void *, size_t))
BLAS(cublasSgbmv_v2, (cublasHandle_t, cublasOperation_t, int, int, int, int, const float *, const
     float *, int, const float *, int, const float *, float *, int))
BLAS(cublasSgeam, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const float *,
     const float *, int, const float *, const float *, int, float *, int))
BLAS(cublasSgemmStridedBatched, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
     int, const float *, const float *, int, long long, const float *, int, long long, const float
     *, float *, int, long long, int))
BLAS(cublasSgemm_v2, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     float *, const float *, int, const float *, int, const float *, float *, int))
BLAS(cublasSgemv_v2, (cublasHandle_t, cublasOperation_t, int, int, const float *, const float *,
     int, const float *, int, const float *, float *, int))
BLAS(cublasSger_v2, (cublasHandle_t, int, int, const float *, const float *, int, const float *,
     int, float *, int))
BLAS(cublasSnrm2_v2, (cublasHandle_t, int, const float *, int, float *))
BLAS(cublasSrot_v2, (cublasHandle_t, int, float *, int, float *, int, const float *, const float
     *))
BLAS(cublasSrotg_v2, (cublasHandle_t, float *, float *, float *, float *))
BLAS(cublasSrotm_v2, (cublasHandle_t, int, float *, int, float *, int, const float *))
BLAS(cublasSrotmg_v2, (cublasHandle_t, float *, float *, float *, const float *, float *))
BLAS(cublasSsbmv_v2, (cublasHandle_t, cublasFillMode_t, int, int, const float *, const float *,
     int, const float *, int, const float *, float *, int))
BLAS(cublasSscal_v2, (cublasHandle_t, int, const float *, float *, int))
BLAS(cublasSspmv_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, const
     float *, int, const float *, float *, int))
BLAS(cublasSspr2_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, int,
     const float *, int, float *))
BLAS(cublasSspr_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, int,
     float *))
BLAS(cublasSswap_v2, (cublasHandle_t, int, float *, int, float *, int))
BLAS(cublasSsymm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const float *,
     const float *, int, const float *, int, const float *, float *, int))
BLAS(cublasSsymv_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, int,
     const float *, int, const float *, float *, int))
BLAS(cublasSsyr2_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, int,
     const float *, int, float *, int))
BLAS(cublasSsyr2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const float
     *, const float *, int, const float *, int, const float *, float *, int))
BLAS(cublasSsyr_v2, (cublasHandle_t, cublasFillMode_t, int, const float *, const float *, int,
     float *, int))
BLAS(cublasSsyrk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const float
     *, const float *, int, const float *, float *, int))
BLAS(cublasSsyrkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const float *,
     const float *, int, const float *, int, const float *, float *, int))
BLAS(cublasStbmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const float *, int, float *, int))
BLAS(cublasStbsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const float *, int, float *, int))
BLAS(cublasStpmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const float *, float *, int))
BLAS(cublasStpsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const float *, float *, int))
BLAS(cublasStpttr, (cublasHandle_t, cublasFillMode_t, int, const float *, float *, int))
BLAS(cublasStrmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const float *, int, float *, int))
BLAS(cublasStrsm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
     cublasDiagType_t, int, int, const float *, const float *, int, float *, int))
BLAS(cublasStrsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const float *, int, float *, int))
BLAS(cublasStrttp, (cublasHandle_t, cublasFillMode_t, int, const float *, int, float *))
BLAS(cublasZaxpy_v2, (cublasHandle_t, int, const cuDoubleComplex *, const cuDoubleComplex *, int,
     cuDoubleComplex *, int))
BLAS(cublasZcopy_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZdgmm, (cublasHandle_t, cublasSideMode_t, int, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZdotc_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     int, cuDoubleComplex *))
BLAS(cublasZdotu_v2, (cublasHandle_t, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     int, cuDoubleComplex *))
BLAS(cublasZdscal_v2, (cublasHandle_t, int, const double *, cuDoubleComplex *, int))
BLAS(cublasZgbmv_v2, (cublasHandle_t, cublasOperation_t, int, int, int, int, const cuDoubleComplex
     *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZgeam, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZgemm3m, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZgemm_v2, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZgemv_v2, (cublasHandle_t, cublasOperation_t, int, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZgerc_v2, (cublasHandle_t, int, int, const cuDoubleComplex *, const cuDoubleComplex *,
     int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZgeru_v2, (cublasHandle_t, int, int, const cuDoubleComplex *, const cuDoubleComplex *,
     int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZhbmv_v2, (cublasHandle_t, cublasFillMode_t, int, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZhemm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZhemv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZher2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZher2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const double
     *, cuDoubleComplex *, int))
BLAS(cublasZher_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const cuDoubleComplex
     *, int, cuDoubleComplex *, int))
BLAS(cublasZherk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const double
     *, const cuDoubleComplex *, int, const double *, cuDoubleComplex *, int))
BLAS(cublasZherkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const double
     *, cuDoubleComplex *, int))
BLAS(cublasZhpmv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, cuDoubleComplex *,
     int))
BLAS(cublasZhpr2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, cuDoubleComplex *))
BLAS(cublasZhpr_v2, (cublasHandle_t, cublasFillMode_t, int, const double *, const cuDoubleComplex
     *, int, cuDoubleComplex *))
BLAS(cublasZrot_v2, (cublasHandle_t, int, cuDoubleComplex *, int, cuDoubleComplex *, int, const
     double *, const cuDoubleComplex *))
BLAS(cublasZscal_v2, (cublasHandle_t, int, const cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZswap_v2, (cublasHandle_t, int, cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZsymm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZsymv_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZsyr2_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZsyr2k_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZsyr_v2, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, const
     cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZsyrk_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, cuDoubleComplex *,
     int))
BLAS(cublasZsyrkx, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const
     cuDoubleComplex *, const cuDoubleComplex *, int, const cuDoubleComplex *, int, const
     cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZtbmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZtbsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     int, const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZtpmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZtpsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuDoubleComplex *, cuDoubleComplex *, int))
BLAS(cublasZtpttr, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *,
     cuDoubleComplex *, int))
BLAS(cublasZtrmv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZtrsm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
     cublasDiagType_t, int, int, const cuDoubleComplex *, const cuDoubleComplex *, int,
     cuDoubleComplex *, int))
BLAS(cublasZtrsv_v2, (cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int,
     const cuDoubleComplex *, int, cuDoubleComplex *, int))
BLAS(cublasZtrttp, (cublasHandle_t, cublasFillMode_t, int, const cuDoubleComplex *, int,
     cuDoubleComplex *))
