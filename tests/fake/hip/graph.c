/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: what is enqueued on a stream while it is captured. */
#include <stdlib.h>

#include "stream.h"

gpu_result fake_StreamBeginCapture(gpu_stream stream, int mode)
{
    gpu_result result = stream_begin("StreamBeginCapture", stream);
    gpu_graph graph;

    if (result || stream->capture || mode < 0 || mode > GPU_CAPTURE_RELAXED)
        return result ? result : FAKE_INVALID_VALUE;
    graph = must_alloc(sizeof *graph);
    graph->end = &graph->first;
    stream_lock();
    stream->capture = graph;
    stream_unlock();
    return GPU_SUCCESS;
}

static void destroy(gpu_graph graph)
{
    operation_free_list(graph->first);
    free(graph);
}

/* The capture ends even if the call reports an error. */
gpu_result fake_StreamEndCapture(gpu_stream stream, gpu_graph *out)
{
    gpu_result result = stream_begin("StreamEndCapture", stream);
    gpu_graph graph;

    *out = NULL;
    stream_lock();
    graph = stream->capture;
    stream->capture = NULL;
    stream_unlock();
    if (!graph)
        return result ? result : FAKE_INVALID_VALUE;
    if (!result && graph->is_invalid)
        result = FAKE_CAPTURE_INVALIDATED;
    if (result) {
        destroy(graph);
        return result;
    }
    fake_gpu.alive[FAKE_GRAPH]++;
    *out = graph;
    return GPU_SUCCESS;
}

gpu_result fake_GraphDestroy(gpu_graph graph)
{
    gpu_result result = call_begin("GraphDestroy");

    destroy(graph);
    fake_gpu.alive[FAKE_GRAPH]--;
    return result;
}

gpu_result fake_GraphInstantiate(gpu_graph_exec *out, gpu_graph graph, unsigned long long flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("GraphInstantiate", &context);
    gpu_graph_exec exec;

    if (result || flags)
        return result ? result : FAKE_INVALID_VALUE;
    exec = must_alloc(sizeof *exec);
    exec->context = context;
    exec->refs = 1;
    exec->first = operation_copy_list(graph->first);
    fake_gpu.alive[FAKE_GRAPH_EXEC]++;
    *out = exec;
    return GPU_SUCCESS;
}

/* Launches of a graph run one after the other, in the order of the calls, whatever their streams.
 */
gpu_result fake_GraphLaunch(gpu_graph_exec exec, gpu_stream stream)
{
    gpu_result result = stream_begin("GraphLaunch", stream);
    struct operation op = {.kind = OPERATION_GRAPH, .graph = {.exec = exec}};

    if (!result && exec->context != stream->context)
        result = FAKE_INVALID_HANDLE;
    if (!result && stream->capture)
        result = FAKE_CAPTURE_UNSUPPORTED;
    if (result)
        return result;
    stream_lock();
    exec->refs++;
    op.graph.number = ++exec->launched;
    stream_unlock();
    return stream_push(stream, &op);
}

void graph_exec_unref_locked(gpu_graph_exec exec)
{
    if (--exec->refs)
        return;
    operation_free_list(exec->first);
    free(exec);
}

gpu_result fake_GraphExecDestroy(gpu_graph_exec exec)
{
    gpu_result result = call_begin("GraphExecDestroy");

    stream_lock();
    graph_exec_unref_locked(exec);
    stream_unlock();
    fake_gpu.alive[FAKE_GRAPH_EXEC]--;
    return result;
}
