// A CUDA driver and a cuBLAS for tests on machines without a GPU. It is one library, which the
// environment's GDB_LIBCUDA and GDB_LIBCUBLAS name. Kernels are compiled from their source by a
// C++ compiler. What it does not have, the program finds missing as in an old driver.
#include <unistd.h>

#include "modules.h"
#include "blas.h"

// The context of the one device, while somebody holds it; and the current one of this thread.
static int holders;
static thread_local CUcontext current;
static CUcontext const primary = (CUcontext)&holders;

// enter begins a call. Calls on a device that was lost, or without a context, fail.
static CUresult enter(bool with_context) {
  counts["calls"]++;
  if (holders > 0 && due("lost_after")) lose((CUresult)knobs()["lost_code"]);
  if (lost != CUDA_SUCCESS) {
    capturing = nullptr;  // it went with the device
    return lost;
  }
  if (with_context && (!current || !holders)) {
    complain("a call on a thread without a current context");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

#define ENTER(with_context)               \
  std::lock_guard<std::mutex> hold(lock); \
  if (CUresult wrong = enter(with_context)) return wrong

// Calls that may not be made while this thread captures; they break the capture.
#define NOT_IN_CAPTURE                            \
  if (capturing) {                                \
    capturing->broken = true;                     \
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; \
  }

#define KNOWN(set, handle) \
  if (!set.count(handle)) return CUDA_ERROR_INVALID_HANDLE

extern "C" {

CUresult cuInit(unsigned) {
  std::lock_guard<std::mutex> hold(lock);
  return knobs()["devices"] > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

static const struct {
  int code;
  const char *name, *text;
} texts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = "CUDA_ERROR_OF_THE_EMULATION";
  for (auto &t : texts)
    if (t.code == code) *name = t.name;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char **text) {
  *text = "see its number in cuda.h";
  for (auto &t : texts)
    if (t.code == code) *text = t.text;
  return CUDA_SUCCESS;
}

// Devices and contexts.

CUresult cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = (int)knobs()["devices"];
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return ordinal >= 0 && ordinal < knobs()["devices"] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
  snprintf(name, bytes, "emulated device");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  ENTER(false);
  int capability = (int)knobs()["capability"];
  switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = threads_max; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
  ENTER(false);
  *bytes = (size_t)knobs()["memory"];
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  ENTER(false);
  holders++;
  *context = primary;
  return CUDA_SUCCESS;
}

// The last release ends what is left in the context.
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  std::lock_guard<std::mutex> hold(lock);
  if (holders == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--holders > 0) return CUDA_SUCCESS;
  work_all();
  if (!allocations.empty())
    complain("the context ends with %zu allocations in it", allocations.size());
  while (!allocations.empty()) drop(allocations.begin());
  for (auto &l : locked_memory)
    if (l.second.ours) free((void *)l.first);
  locked_memory.clear();
  counts["locked"] = 0;
  lost = CUDA_SUCCESS;  // a real one would stay lost to the process
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (context && context != primary) return CUDA_ERROR_INVALID_CONTEXT;
  current = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = current;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  ENTER(true);
  counts["waits"]++;
  NOT_IN_CAPTURE;
  return work_all();
}

// Memory.

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  ENTER(true);
  *total = (size_t)knobs()["memory"];
  *free = *total - std::min(*total, allocated);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  ENTER(true);
  NOT_IN_CAPTURE;
  return allocate(address, bytes);
}

CUresult cuMemFree(CUdeviceptr address) {
  ENTER(true);
  NOT_IN_CAPTURE;
  CUresult r = work_all();
  return r != CUDA_SUCCESS ? r : release(address);
}

static CUresult lock_memory(const void *p, size_t bytes, bool ours) {
  const char *begin = (const char *)p;
  for (auto &l : locked_memory)
    if (begin < l.first + l.second.bytes && l.first < begin + bytes)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  locked_memory[begin] = {bytes, ours};
  counts["locked"]++;
  return CUDA_SUCCESS;
}

static CUresult unlock_memory(const void *p, bool ours) {
  auto found = locked_memory.find((const char *)p);
  if (found == locked_memory.end() || found->second.ours != ours)
    return ours ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  CUresult r = work_all();
  locked_memory.erase(found);
  counts["locked"]--;
  return r;
}

CUresult cuMemHostRegister(void *p, size_t bytes, unsigned) {
  ENTER(true);
  if (!p || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (due("fail_alloc") || due("fail_lock")) return CUDA_ERROR_OUT_OF_MEMORY;
  return lock_memory(p, bytes, false);
}

CUresult cuMemHostUnregister(void *p) {
  ENTER(true);
  return unlock_memory(p, false);
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned) {
  ENTER(true);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (due("fail_alloc")) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = aligned_alloc(page, (bytes + page - 1) & ~(page - 1));
  return *p ? lock_memory(*p, bytes, true) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *p) {
  ENTER(true);
  CUresult r = unlock_memory(p, true);
  if (r == CUDA_SUCCESS) free(p);
  return r;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *p, unsigned) {
  ENTER(true);
  if (!is_locked(p, 1)) return CUDA_ERROR_INVALID_VALUE;
  *address = (CUdeviceptr)p;
  return CUDA_SUCCESS;
}

// Copies.

static CUresult queue_copy(const char *what, void *to, const void *from, size_t bytes, CUstream s,
                           bool to_device = false) {
  if (due("fail_copy")) return lose(CUDA_ERROR_LAUNCH_FAILED);
  counts["copies"]++;
  long long rate = to_device ? knobs()["copy_rate"] : 0;
  return enqueue(s, {what, [=] {
                       if (rate) usleep(bytes * 1000000 / rate);
                       memmove(to, from, bytes);
                       return CUDA_SUCCESS;
                     }});
}

static CUresult check_device(CUdeviceptr address, size_t bytes) {
  if (on_device(address, bytes) || is_locked((void *)address, bytes)) return CUDA_SUCCESS;
  complain("%zu bytes at %#llx are not of the device: %s", bytes, address,
           describe((void *)(address + bytes)).c_str());
  return CUDA_ERROR_INVALID_VALUE;
}

// A driver takes other memory too, but the host then waits for the copy.
static CUresult check_locked(const void *p, size_t bytes) {
  if (is_locked(p, bytes)) return CUDA_SUCCESS;
  complain("a copy that does not wait, of %zu bytes at %p, which are not locked", bytes, p);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
  ENTER(true);
  if (CUresult r = check_device(to, bytes)) return r;
  if (CUresult r = check_locked(from, bytes)) return r;
  counts["bytes_to_device"] += (long long)bytes;
  return queue_copy("copy to the device", (void *)to, from, bytes, s, true);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
  ENTER(true);
  if (CUresult r = check_device(from, bytes)) return r;
  if (CUresult r = check_locked(to, bytes)) return r;
  counts["bytes_to_host"] += (long long)bytes;
  return queue_copy("copy to the host", to, (void *)from, bytes, s);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  ENTER(true);
  if (CUresult r = check_device(to, bytes)) return r;
  if (CUresult r = check_device(from, bytes)) return r;
  if (to < from + bytes && from < to + bytes) {
    complain("a copy of %zu bytes overlaps itself", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  return queue_copy("copy on the device", (void *)to, (void *)from, bytes, s);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s) {
  ENTER(true);
  if (CUresult r = check_device(to, bytes)) return r;
  return enqueue(s, {"fill", [=] {
                       memset((void *)to, value, bytes);
                       return CUDA_SUCCESS;
                     }});
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream s) {
  ENTER(true);
  if (to % 4) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = check_device(to, 4 * words)) return r;
  return enqueue(s, {"fill", [=] {
                       for (size_t i = 0; i < words; i++) ((unsigned *)to)[i] = value;
                       return CUDA_SUCCESS;
                     }});
}

// Streams.

CUresult cuStreamCreate(CUstream *s, unsigned flags) {
  ENTER(true);
  *s = new CUstream_st{!(flags & CU_STREAM_NON_BLOCKING)};
  streams.insert(*s);
  return CUDA_SUCCESS;
}

static CUresult drain(CUstream s) {
  return work_until([=] { return s->queue.empty(); });
}

CUresult cuStreamDestroy(CUstream s) {
  ENTER(true);
  KNOWN(streams, s);
  CUresult r = drain(s);
  streams.erase(s);
  delete s;
  return r;
}

CUresult cuStreamSynchronize(CUstream s) {
  ENTER(true);
  counts["waits"]++;
  KNOWN(streams, s);
  NOT_IN_CAPTURE;
  return drain(s);
}

CUresult cuStreamQuery(CUstream s) {
  ENTER(true);
  KNOWN(streams, s);
  NOT_IN_CAPTURE;
  work_a_little();
  if (lost != CUDA_SUCCESS) return lost;
  return s->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  ENTER(true);
  KNOWN(streams, s);
  KNOWN(events, e);
  return wait_for(s, e);
}

// Events.

CUresult cuEventCreate(CUevent *e, unsigned flags) {
  ENTER(true);
  *e = new CUevent_st{!(flags & CU_EVENT_DISABLE_TIMING)};
  events.insert(*e);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent e) {
  ENTER(true);
  KNOWN(events, e);
  CUresult r = work_all();  // operations that wait for it have its address
  events.erase(e);
  delete e;
  return r;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
  ENTER(true);
  if (s) KNOWN(streams, s);
  KNOWN(events, e);
  return record(e, s);
}

CUresult cuEventQuery(CUevent e) {
  ENTER(true);
  KNOWN(events, e);
  NOT_IN_CAPTURE;
  if (e->capture) return CUDA_ERROR_CAPTURED_EVENT;
  work_a_little();
  if (lost != CUDA_SUCCESS) return lost;
  return e->done >= e->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent e) {
  ENTER(true);
  counts["event_waits"]++;
  KNOWN(events, e);
  NOT_IN_CAPTURE;
  if (e->capture) return CUDA_ERROR_CAPTURED_EVENT;
  return work_until([=] { return e->done >= e->recorded; });
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  ENTER(true);
  KNOWN(events, begin);
  KNOWN(events, end);
  if (!begin->timing || !end->timing || !begin->recorded || !end->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  if (begin->done < begin->recorded || end->done < end->recorded) return CUDA_ERROR_NOT_READY;
  *ms = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return CUDA_SUCCESS;
}

// Modules and launches.

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  ENTER(true);
  NOT_IN_CAPTURE;
  CUmodule m = new CUmod_st;
  std::string wrong = read_ptx((const char *)image, m);
  if (wrong.empty()) {
    modules.insert(*module = m);
    return CUDA_SUCCESS;
  }
  delete m;
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = (char *)values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = (size_t)values[i];
  }
  if (log && bytes) snprintf(log, bytes, "%s", wrong.c_str());
  return CUDA_ERROR_INVALID_PTX;
}

CUresult cuModuleUnload(CUmodule module) {
  ENTER(true);
  KNOWN(modules, module);
  modules.erase(module);
  delete module;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER(true);
  KNOWN(modules, module);
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &found->second;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                        unsigned threads, unsigned threads_y, unsigned threads_z,
                        unsigned shared_bytes, CUstream s, void **parameters, void **) {
  ENTER(true);
  if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1) {
    complain("kernel %s: the emulated device has one dimension", f->kernel->name.c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // 48 KiB is what a kernel has that asks for no more.
  if (blocks == 0 || threads == 0 || threads > threads_max || shared_bytes > shared_max)
    return CUDA_ERROR_INVALID_VALUE;
  if (due("fail_launch")) return lose(CUDA_ERROR_LAUNCH_FAILED);
  if (!s || !s->capture) counts["launches"]++;
  const Kernel *k = f->kernel;
  std::function<void()> body = k->bind(parameters);
  return enqueue(s, {k->name, [=] {
                           return run_kernel(*k, body, blocks, threads, shared_bytes);
                         }});
}

// Graphs.

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode) {
  ENTER(true);
  KNOWN(streams, s);
  if (s->capture || capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return CUDA_ERROR_NOT_SUPPORTED;
  capturing = s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->streams.insert(s);
  s->last.clear();
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *graph) {
  ENTER(true);
  KNOWN(streams, s);
  return end_capture(s, graph);
}

CUresult cuGraphDestroy(CUgraph graph) {
  ENTER(false);
  KNOWN(graphs, graph);
  graphs.erase(graph);
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  ENTER(true);
  KNOWN(graphs, graph);
  *exec = new CUgraphExec_st{std::make_shared<std::vector<Node>>(graph->nodes)};
  graph_execs.insert(*exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *,
                           CUgraphExecUpdateResult *) {
  ENTER(true);
  KNOWN(graph_execs, exec);
  KNOWN(graphs, graph);
  if (!same_shape(*exec->nodes, graph->nodes)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  exec->nodes = std::make_shared<std::vector<Node>>(graph->nodes);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENTER(true);
  KNOWN(graph_execs, exec);
  graph_execs.erase(exec);
  delete exec;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) {
  ENTER(true);
  KNOWN(graph_execs, exec);
  if (due("fail_launch")) return lose(CUDA_ERROR_LAUNCH_FAILED);
  counts["graph_launches"]++;
  auto nodes = exec->nodes;
  return enqueue(s, {"graph", [=] { return run_graph(*nodes); }});
}

}  // extern "C"
