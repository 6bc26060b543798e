//go:build cuda && cgo && linux

package cuda

/*
#include <cuda.h>
*/
import "C"

import "errors"

// Graph is work that was captured from streams, to be queued as a whole by one call.
type Graph struct{ exec C.CUgraphExec }

// Capture makes a graph of the work that queue queues on s, instead of doing it. queue must do
// nothing else on the device. Other streams join when they wait for an event of s that was recorded
// in queue; s must wait for an event of theirs at the end. The caller calls Close.
func (s *Stream) Capture(queue func() error) (*Graph, error) {
	captured, err := s.capture(queue)
	if err != nil {
		return nil, err
	}
	g := new(Graph)
	// The function with Flags means the same in all versions; the one without has changed.
	err = check("make a graph", C.cuGraphInstantiateWithFlags(&g.exec, captured, 0))
	err = errors.Join(err, destroyGraph(captured))
	return g, err
}

// Update captures as Capture does, and makes g do the captured work. It is faster than a new graph.
// It is possible if kernels and their dependencies are the same and only arguments differ. If not,
// or if the driver cannot do it, changed is false and g stays as it was.
func (g *Graph) Update(s *Stream, queue func() error) (changed bool, err error) {
	captured, err := s.capture(queue)
	if err != nil {
		return false, err
	}
	var node C.CUgraphNode
	var how C.CUgraphExecUpdateResult
	result := C.cuGraphExecUpdate(g.exec, captured, &node, &how)
	if result == C.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE || result == C.CUDA_ERROR_NOT_SUPPORTED {
		return false, destroyGraph(captured)
	}
	err = errors.Join(check("update a graph", result), destroyGraph(captured))
	return err == nil, err
}

// Launch queues the graph on a stream.
func (g *Graph) Launch(s *Stream) error {
	return check("launch a graph", C.cuGraphLaunch(g.exec, s.handle()))
}

// Close ends the graph, once its launches are done.
func (g *Graph) Close() error { return check("end a graph", C.cuGraphExecDestroy(g.exec)) }

// capture turns what queue queues into a graph of the driver's.
func (s *Stream) capture(queue func() error) (captured C.CUgraph, err error) {
	if err := check("begin a capture", C.cuStreamBeginCapture(s.handle(),
		C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
		return nil, err
	}
	failure := queue()
	err = check("end a capture", C.cuStreamEndCapture(s.handle(), &captured))
	if failure != nil { // the cause of what the end of the capture may say
		if err == nil {
			err = destroyGraph(captured)
		}
		return nil, errors.Join(failure, err)
	}
	return captured, err
}

func destroyGraph(g C.CUgraph) error { return check("free a graph", C.cuGraphDestroy(g)) }
