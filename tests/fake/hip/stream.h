/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and what they run: operations, each in the order of its stream, on threads of the fake.
 * Which stream goes on is decided by the seed of struct fake_gpu. */
#ifndef FAKE_HIP_STREAM_H
#define FAKE_HIP_STREAM_H

#include "runtime.h"

enum operation_kind {
    OPERATION_COPY,
    OPERATION_SET,
    OPERATION_KERNEL,
    OPERATION_CALL,   /* of a function of another library */
    OPERATION_RECORD, /* of an event */
    OPERATION_WAIT,   /* for one */
    OPERATION_GRAPH
};

struct operation {
    struct operation *next;
    enum operation_kind kind;
    uint64_t due; /* not before this time, unless somebody waits */
    union {
        struct {
            void *to;
            const void *from;
            size_t bytes;
            bool owns_from; /* a copy of pageable memory */
        } copy;
        struct {
            void *to;
            uint32_t pattern, width;
            size_t count;
        } set;
        struct {
            gpu_function function;
            uint32_t grid[3], group[3], shared_bytes, n_words;
            uint64_t *words; /* owned */
        } kernel;
        struct {
            void (*run)(const void *data);
            void *data; /* owned */
            size_t bytes;
            bool waits; /* for what other streams run */
        } call;
        struct {
            gpu_event event;
            uint64_t number; /* of the event's records */
        } event;
        struct {
            gpu_graph_exec exec;
            uint64_t number; /* of the graph's launches */
        } graph;
    };
};

struct gpu_event_object {
    gpu_context context;
    uint32_t refs;              /* of operations, and of the application */
    uint64_t recorded, reached; /* numbers of the last record, and of the last that has run */
};

/* The operations of a graph, in order. */
struct gpu_graph_object {
    struct operation *first, **end;
    bool is_invalid; /* a call was made that a capture does not allow */
};

struct gpu_graph_exec_object {
    gpu_context context;
    uint32_t refs;
    struct operation *first;
    uint64_t launched, finished;
};

struct gpu_stream_object {
    struct gpu_stream_object *next; /* in the list of all */
    gpu_context context;
    struct operation *first, **end;
    bool is_running;   /* a thread runs `first` */
    bool is_destroyed; /* freed when it is empty */
    gpu_graph capture; /* NULL: none */
};

/* ---- stream.c ---- */

/* The lock of everything above. */
void stream_lock(void);
void stream_unlock(void);
void stream_hold(bool held);
/* Makes the context unusable: what waits for it returns. */
void stream_lose(gpu_context context, gpu_result result);

/* Takes the operation: appends it to the stream, or to the graph that is captured. */
gpu_result stream_push(gpu_stream stream, const struct operation *op);
/* Begins a call on a stream of the current context. */
gpu_result stream_begin(const char *name, gpu_stream stream);
/* Waits until the stream is empty. */
gpu_result stream_drain(gpu_stream stream);
void event_unref_locked(gpu_event event);

/* ---- operation.c ---- */

/* Runs an operation, without the lock. */
gpu_result operation_run(const struct operation *op);
/* Enqueues a copy. */
gpu_result operation_copy(gpu_stream stream, void *to, const void *from, size_t bytes);
/* Slots of struct fake_gpu. */
int operation_enqueue(void *stream, void (*run)(const void *data), const void *data,
                      uint64_t bytes);
int operation_enqueue_waiting(void *stream, void (*run)(const void *data), const void *data,
                              uint64_t bytes);
/* Frees what it owns. */
void operation_fini(struct operation *op);
/* A deep copy of a list. */
struct operation *operation_copy_list(const struct operation *first);
void operation_free_list(struct operation *first);

/* ---- graph.c ---- */

void graph_exec_unref_locked(gpu_graph_exec exec);

#endif
