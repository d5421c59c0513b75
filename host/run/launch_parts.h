/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a launch: what launch.c, prepare.c and bind_args.c share while one is made. */
#ifndef RUN_LAUNCH_PARTS_H
#define RUN_LAUNCH_PARTS_H

#include <frit/program.h>

#include "run/launch_scalars.h"

struct buffer;
struct buffer_use;
struct tune_record;

struct launch {
    const struct launch_call *call;
    struct frame *frame;
    struct batch *batch;
    const struct value
        *copy_of;      /* this launch copies the value for another one; NULL: it does not */
    struct value *in;  /* the frame's, or a copy under the strides that the program wanted */
    struct value *out; /* types and layouts; their buffers once they are placed */
    bool *copied;      /* by input */
    bool wait;         /* for a compile */
    bool peek;         /* no compile is begun */
    bool ahead;        /* it is not made yet: operands may have no memory */
    struct launch_scalars scalars;
    uint64_t decisions; /* serial of the device's, before the candidates were ordered */
    unsigned char *key; /* see prepare_query; freed when prepare has returned */
    size_t key_bytes;
    struct prepared *prepared; /* one reference */
    frit_launch *launch;
    frit_arg *args;
    struct buffer_use *uses; /* bind_args.c's: of buffers by arguments */
    uint32_t log2_uses;
    struct batch_range *ranges;
    uint32_t n_ranges;
    struct buffer **workspaces; /* the workspace if any, then derived memory that is not kept */
    uint32_t n_workspaces;
    struct derived_use *derived; /* of the spec, see bind_derived.h */
    uint32_t n_cmds;             /* that its program recorded, 1: a LAUNCH */
    uint32_t n_assigned;         /* outputs that are to be written where they are assigned to */
};

/* Numbers of candidates, in the order in which they are tried.  Those after the first `n_best` are
 * not tried while one of these is being compiled. */
struct candidates {
    uint32_t *list;
    uint32_t count, n_best;
    uint32_t numeric_class;           /* FRIT_NUMERIC_*: of any of them at most */
    const struct tune_record *record; /* that the order follows; NULL: none */
    bool is_split;                    /* it is of this signature alone */
    bool in_parts;                    /* none of them: the ops one by one */
    const char *chosen;               /* how: "priority", "measured", "roofline", "forced" */
};

/* The bytes a value's elements lie in. */
struct extent {
    uint64_t first, bytes; /* first: from the start of the buffer */
    uint64_t origin;       /* of element 0,0,.. from first */
};

/* The alignment of a place in a block of driver memory that is known whatever block it is. */
uint64_t launch_align(const struct launch *l);
uint32_t launch_align_log2(const struct launch *l, uint64_t offset);

/* Operands, then outputs. */
const struct value *launch_value(const struct launch *l, uint32_t index);

/* Gathers scalars, types and dense layouts of outputs, and memory for the rest. */
frit_status launch_init(struct launch *l, frit_err *err);

#endif
