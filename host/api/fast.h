/* SPDX-License-Identifier: Apache-2.0 */
/* The usual call, recorded without asking the op table anything: few operands that the stream
 * knows, one output, and types and attributes that op_check has seen before on this stream. */
#ifndef API_FAST_H
#define API_FAST_H

#include "api/call.h"
#include "run/drain.h"

/* A call that passed op_check on the long way. */
struct fast_seen {
    uint32_t op;
    uint32_t n_in;
    const struct op_input *in; /* as checked */
    const void *raw;           /* attributes as given and as checked, NULL: none */
    const void *attrs;
    uint32_t attrs_id;
    const struct op_type *out;
};

/* Whether such a call can go the short way next time. */
bool fast_takes(const struct api_call *call);
/* Inside the stream's lock: remembers it. */
void fast_learn(struct stream *stream, const struct fast_seen *seen);

#endif
