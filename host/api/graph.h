/* SPDX-License-Identifier: Apache-2.0 */
/* Programs from files: what a frit_graph is. */
#ifndef API_GRAPH_H
#define API_GRAPH_H

#include <pthread.h>

#include <frit/frit.h>

#include "base/str.h"
#include "graph/graph.h"

struct held_constants;
struct onnx_model;
struct script;

struct frit_graph {
    struct script *script;    /* a text program, */
    struct onnx_model *model; /* or a model, and the other is NULL */
    struct graph graph;       /* after binding */
    bool bound;
    struct arena arena;   /* of the texts below */
    const char *name;     /* for messages */
    const char **files;   /* paths of the inputs' files, NULL: none */
    struct str problems;  /* of the last binding, a line each */
    pthread_mutex_t lock; /* of `held` */
    struct held_constants *held;
};

/* Values of the bound graph that it holds itself, rather than the caller: constants behind its
 * inputs, and results of settled ops, which follow from them.  Puts their tensors into `tensors`,
 * by value; they are made once for a device and stay until the graph is bound again or freed.
 * *settled: by op, those that need not run; NULL: none. */
frit_status graph_constants(const frit_graph *graph, frit_device *device, frit_tensor **tensors,
                            const bool **settled, frit_err *err);
void graph_constants_drop(frit_graph *graph);

#endif
