/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs of a recording.
 *
 * A graph cannot contain a product whose operands move: the library bakes their addresses into it.
 * Such products stand between graphs, and where the same addresses come again, as in a loop that
 * uses its buffers in turn, all commands become one graph for these addresses.  Threads: the lock
 * of the recording's queue, or there is one thread. */
#ifndef HIP_RECORDING_GRAPH_H
#define HIP_RECORDING_GRAPH_H

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/status.h>

#include "api.h"
#include "buffer.h"
#include "gpu/capture.h"

struct device;

enum { MAX_PLACED_GRAPHS = 4 };

/* The block of a kernel whose words change: where it lies in the words of the capture and in the
 * region. */
struct changing_block {
    uint64_t first_word, region_word, n_words;
};

/* A part of a recording: a graph, or a product whose operands move. */
struct segment {
    gpu_graph_exec graph; /* NULL: a product, or nothing */
    const struct captured_kernel *product;
};

/* Addresses of the operands of all moving products, and the graph of all commands for them. */
struct placed_graph {
    uint64_t *words;     /* owned; NULL: it is unused */
    gpu_graph_exec exec; /* NULL: these addresses came once, or no graph could be made for them */
    bool is_tried;
};

struct frit_recording {
    struct capture capture;
    frit_queue *queue;
    struct segment *segments; /* owned */
    uint32_t n_segments;
    uint32_t n_moving; /* products with moving operands */
    struct placed_graph placed[MAX_PLACED_GRAPHS];
    uint32_t next_placed;            /* the one whose turn it is to be replaced */
    frit_memory region;              /* device memory; zeroed where nothing changes */
    uint64_t *region_words;          /* what a replay writes to it; owned */
    struct changing_block *changing; /* owned */
    uint32_t n_changing;
    uint64_t n_region_words;
};

/* Whether the kernel reads its block in the region. */
bool graph_is_changing(const struct captured_kernel *kernel);

/* The forms that the kernels need, before the capture begins, in which the runtime allows less.
 * FRIT_BUSY: they are being compiled, all at once, in the background. */
frit_status graph_make_forms(struct device *device, const struct capture *capture, frit_err *err);
/* Makes the segments, after forms and region. */
frit_status graph_make_segments(struct device *device, frit_recording *recording, frit_err *err);
/* The graph of all commands for the addresses that the words of the capture have now; NULL: there
 * is none, so the segments must do. */
gpu_graph_exec graph_find_placed(struct device *device, frit_recording *recording);
void graph_destroy_all(struct device *device, frit_recording *recording);

#endif
