/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over the spatial dims of x [n, c, ..], for the rules of convolution and pooling. */
#ifndef GRAPH_SHAPE_WINDOW_H
#define GRAPH_SHAPE_WINDOW_H

struct shape_window {
    int64_t stride;
    int64_t padding; /* on both sides */
};

#endif
