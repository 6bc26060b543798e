// Streams, events and graphs. What is queued on a stream is done when the host waits for something,
// in an order that is random but for what streams and events promise: so an event that is missing
// shows as a wrong result.
#pragma once
#include <chrono>
#include <deque>
#include <memory>
#include <set>

#include "launch.h"

typedef std::chrono::steady_clock Clock;

struct Capture;

struct CUevent_st {
  bool timing;
  long recorded = 0, done = 0;  // which Record, the last one queued and the last one done
  Clock::time_point when = {};
  std::shared_ptr<Capture> capture = {};  // of the stream it was recorded on, if that was capturing
  std::vector<int> nodes = {};            // behind which it was
};

struct Operation {
  std::string what;
  std::function<CUresult()> run;
  CUevent wait = nullptr;  // what must be done before
  long wait_for = 0;
};

struct Node {
  Operation operation;
  std::vector<int> after;
};

struct CUgraph_st {
  std::vector<Node> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<std::vector<Node>> nodes;
};

struct Capture {
  std::vector<Node> nodes;
  CUstream origin;
  std::set<CUstream> streams;
  bool broken = false;
};

struct CUstream_st {
  bool blocking;  // with the NULL stream
  std::deque<Operation> queue = {};
  std::shared_ptr<Capture> capture = {};
  std::vector<int> last = {};  // nodes of the capture behind which the next one is
};

static std::set<CUstream> streams;
static std::set<CUevent> events;
static std::set<CUgraph> graphs;
static std::set<CUgraphExec> graph_execs;

// The capture that this thread began.
static thread_local std::shared_ptr<Capture> capturing;

static bool can_run(const Operation &o) { return !o.wait || o.wait->done >= o.wait_for; }

static void run(const Operation &o) {
  DeviceWorks works;
  CUresult r = o.run();
  if (r != CUDA_SUCCESS) lose(r);
}

// work_until runs what is queued, some stream's next operation after the other, until finished.
// What is queued on a device that was lost is dropped.
template <class Finished>
static CUresult work_until(Finished finished) {
  DeviceWorks works;
  while (lost == CUDA_SUCCESS && !finished()) {
    std::vector<CUstream> can;
    for (CUstream s : streams)
      if (!s->queue.empty() && can_run(s->queue.front())) can.push_back(s);
    if (can.empty()) {
      complain("the host waits for what nobody will do");
      return CUDA_ERROR_ILLEGAL_STATE;
    }
    CUstream s = can[below(can.size())];
    Operation o = s->queue.front();
    s->queue.pop_front();
    run(o);
  }
  if (lost != CUDA_SUCCESS)
    for (CUstream s : streams) s->queue.clear();
  return lost;
}

// work_a_little runs some operations, as time that passes would.
static void work_a_little() {
  size_t n = 1 + below(3);
  work_until([&] {
    if (n-- == 0) return true;
    for (CUstream s : streams)
      if (!s->queue.empty() && can_run(s->queue.front())) return false;
    return true;
  });
}

static CUresult work_all() {
  return work_until([] {
    for (CUstream s : streams)
      if (!s->queue.empty()) return false;
    return true;
  });
}

// The NULL stream does its work at once, behind that of blocking streams and of no others.
static CUresult run_now(const Operation &o) {
  CUresult r = work_until([] {
    for (CUstream s : streams)
      if (s->blocking && !s->queue.empty()) return false;
    return true;
  });
  if (r == CUDA_SUCCESS) run(o);
  return lost;
}

// enqueue queues an operation, or adds it to the graph that is captured.
static CUresult enqueue(CUstream s, Operation o) {
  if (!s) return run_now(o);
  if (!streams.count(s)) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture) {
    std::vector<Node> &nodes = s->capture->nodes;
    nodes.push_back(Node{o, s->last});
    s->last = {(int)nodes.size() - 1};
    return CUDA_SUCCESS;
  }
  s->queue.push_back(o);
  return CUDA_SUCCESS;
}

static CUresult record(CUevent e, CUstream s) {
  if (s && s->capture) {
    e->capture = s->capture;
    e->nodes = s->last;
    return CUDA_SUCCESS;
  }
  e->capture = nullptr;
  long number = ++e->recorded;
  return enqueue(s, {"record", [=] {
                       e->done = number;
                       e->when = Clock::now();
                       return CUDA_SUCCESS;
                     }});
}

static CUresult wait_for(CUstream s, CUevent e) {
  if (!s) return work_until([=] { return e->done >= e->recorded; });
  if (e->capture) {
    if (s->capture && s->capture != e->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (!s->capture) s->capture = e->capture, s->last.clear();
    s->capture->streams.insert(s);
    s->last.insert(s->last.end(), e->nodes.begin(), e->nodes.end());
    return CUDA_SUCCESS;
  }
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  Operation o{"wait", [] { return CUDA_SUCCESS; }};
  o.wait = e, o.wait_for = e->recorded;
  return enqueue(s, o);
}

// joined says whether all nodes of a capture lie before those that its first stream ends with.
static bool joined(const Capture &c) {
  std::vector<bool> before(c.nodes.size());
  std::vector<int> open = c.origin->last;
  while (!open.empty()) {
    int n = open.back();
    open.pop_back();
    if (before[n]) continue;
    before[n] = true;
    open.insert(open.end(), c.nodes[n].after.begin(), c.nodes[n].after.end());
  }
  for (bool b : before)
    if (!b) return false;
  return true;
}

static CUresult end_capture(CUstream s, CUgraph *graph) {
  std::shared_ptr<Capture> c = s->capture;
  if (!c || c->origin != s) return CUDA_ERROR_ILLEGAL_STATE;
  if (capturing != c) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  bool whole = joined(*c);
  for (CUstream other : c->streams) other->capture = nullptr, other->last.clear();
  capturing = nullptr;
  *graph = nullptr;
  if (c->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (due("fail_capture")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (!whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  graphs.insert(*graph = new CUgraph_st{c->nodes});
  return CUDA_SUCCESS;
}

// run_graph runs nodes in a random order in which each comes after those it depends on.
static CUresult run_graph(const std::vector<Node> &nodes) {
  std::vector<bool> done(nodes.size());
  for (size_t count = 0; count < nodes.size(); count++) {
    std::vector<int> can;
    for (size_t i = 0; i < nodes.size(); i++) {
      bool free = !done[i];
      for (int before : nodes[i].after) free = free && done[before];
      if (free) can.push_back((int)i);
    }
    int next = can[below(can.size())];
    CUresult r = nodes[next].operation.run();
    if (r != CUDA_SUCCESS) return r;
    done[next] = true;
  }
  return CUDA_SUCCESS;
}

// same_shape says whether one graph may take another's place.
static bool same_shape(const std::vector<Node> &a, const std::vector<Node> &b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (a[i].operation.what != b[i].operation.what || a[i].after != b[i].after) return false;
  return true;
}
