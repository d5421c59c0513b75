/* SPDX-License-Identifier: Apache-2.0 */
/* A driver inside the test: host memory (it checks that commands between two BARRIERs touch no
 * common bytes that one of them writes), a few ops of f32 (copy, neg, exp, add, mul; floor and ceil
 * of what is whole; one with an effect), programs for blocks of them, and a script of
 * specs and failures. */
#ifndef TESTS_STREAM_DRIVER_H
#define TESTS_STREAM_DRIVER_H

#include "unit.h"

#include <frit/backend.h>

#include "load/load.h"
#include "load/registry.h"
#include "run/drain.h"
#include "search/fuser.h"

/* One op of a block over registers: the block's operands come first, then each op adds one.  `b` -1
 * is the next launch scalar, -2 nothing. */
struct driver_op {
    uint32_t op;
    int a, b;
};

/* A program for a block, or (n_ops 0) for one op. */
struct driver_program {
    struct driver *driver;
    uint32_t op;
    /* A block; kept by the test. */
    const struct driver_op *ops;
    uint32_t n_ops;
    const int *out; /* the register of each output */
    /* Script. */
    uint32_t n_candidates;
    uint32_t numeric[3]; /* class of each candidate */
    int32_t priority[3];
    frit_candidate candidates[3]; /* filled by describe */
    uint32_t refuse;              /* bit: this candidate refuses every signature */
    uint64_t alias;               /* inputs of output 0, a bit each */
    uint64_t workspace;           /* bytes that a block wants */
    bool relayout_first;          /* candidate 0 wants operand 0 in other strides, then refuses */
    frit_status submit_status;    /* of each submit with a launch of it */
    /* What happened. */
    uint32_t prepares, launches, last_candidate;
    uint32_t specs;       /* not released yet; none is left at destroy */
    uint64_t serial;      /* the generation, whatever the candidate; see driver_improves */
    uint64_t launched_at; /* timeline value of the last launch; has been waited for at destroy */
};

struct driver {
    /* Script. */
    bool reverse;                             /* commands between two BARRIERs run last first */
    uint64_t alias;                           /* inputs of every op's output 0, a bit each */
    uint64_t capacity;                        /* bytes that alloc gives in all, 0: no limit */
    bool refuse_neg;                          /* supports says no */
    uint32_t refuse[4];                       /* likewise to these ops */
    bool host_visible;                        /* alloc gives host pointers */
    uint32_t refuse_prepare;                  /* prepare of this op is FRIT_UNSUPPORTED */
    bool refuse_blocks;                       /* likewise of blocks */
    bool decompose;                           /* composite ops run as core ops */
    void (*on_submit)(struct driver *driver); /* called first in it */
    bool value_first;                         /* but after taking its timeline value */
    uint32_t more_queues;                     /* beside the first one, 3 at most */
    bool poison;                              /* memory is filled before each use */
    bool bad_table;                           /* op_program gives a table without prepare */
    bool fail_writes;                         /* reported by waits */
    bool no_copies;                           /* from a peer: there is no slot for them */
    frit_status copy_status;                  /* of each copy from a peer */
    bool fail_copies;                         /* likewise, reported by waits */
    bool needs_compile;                       /* prepare of neg requires compile */
    bool wants_dense;                         /* prepare of neg requires dense strides */
    uint64_t workspace;                       /* bytes that neg wants zeroed; checked at launch */
    bool workspace_dirty;                     /* they need not be */
    uint64_t derived;                         /* bytes that neg derives from its operand */
    uint32_t n_derived;                       /* how many memories of that size, 0: one */
    uint32_t derived_arg;                     /* the number of the operand that is said to be */
    frit_status odd_answer;                   /* of prepare of neg, where it would be FRIT_OK */
    int64_t *out_strides;                     /* strides neg gives its output, NULL: dense */
    uint64_t out_align;                       /* alignment neg wants for its output */
    uint64_t out_bytes;                       /* and bytes */
    frit_status submit_status;                /* of the next submit with a launch */
    uint32_t submit_after;                    /* or of the one after so many */
    uint32_t fail_alloc, fail_allocs; /* from the n-th alloc on (1: the next), this many fail */
    bool silent;                      /* a refused submit gives no reason */
    frit_status complete_status;      /* of the next launch, reported by waits */
    uint32_t complete_after;          /* or of the one after so many */
    bool nameless;                    /* a failure comes without its value */
    atomic_uint late_waits;           /* so many waits with a limit of time are in vain */
    bool lose;                        /* the next wait loses the device and says why */
    atomic_bool is_lost;              /* each call says that, and not why */
    void (*on_report)(struct driver *driver); /* in a wait that reports a failure */
    bool inline_queue;
    frit_phase phase; /* of prepare and record; all zero: prepare gives none */
    uint32_t max_bindings, max_group, max_grid;
    uint64_t max_binding;
    bool refuse_assigned; /* prepare does not take outputs that are PREASSIGNED */

    /* What happened. */
    uint32_t prepares, compiles, launches, programs_alive, submits, barriers, dispatches;
    uint32_t reads, writes;
    uint32_t peer_copies;
    uint64_t
        copied_value; /* of the last of these; all that the peer had been given was waited for */
    atomic_uint waits;
    atomic_uint_least64_t waited; /* the highest value */
    float effects[64];            /* element 0 of what each effect took, in the order of running */
    uint32_t n_effects;
    uint32_t copies;   /* COPY commands */
    frit_arg last_out; /* the last argument of the last launch */
    uint64_t allocated;
    uint64_t last_cookie;
    frit_arg_sig last_in; /* operand 0 of the last prepare */
    uint8_t last_class;   /* of its scalar */
    uint8_t last_bound_class;
    uint64_t last_tail; /* of operand 0 of the last launch */
    bool workspace_was_zero;
    uint32_t derived_fills;
    uint32_t derived_stale; /* said to be valid, and not derived from what the operand holds */
    uint64_t last_content;  /* of the operand that memory was derived from last */

    atomic_uint_least64_t timeline; /* one for all queues, on which nothing is late */
    uint32_t n_queues;              /* made beside the first one */
    char queues[3];                 /* their handles */
    frit_failure failures[8];       /* values grow, and in one the commands */
    uint32_t n_failures;
    struct driver *peer; /* its second device, NULL: none */
    struct plugin plugin;
    frit_device_info info;
    frit_heap heap;
    struct plugin_op ops[2];
    struct registry registry; /* of this plugin alone */
    struct device_entry entry;
};

/* A program for a block, `foreign`: with commands of its own; the caller's until destroy.  `self`
 * is the driver_program. */
frit_program driver_block(struct driver *driver, const struct driver_op *ops, uint32_t n_ops,
                          const int *out, bool foreign);

/* Ops of the test's own: one that gives its operand back and whose effect the driver writes down;
 * and one without results that no driver has. */
uint32_t driver_effect_op(void);
uint32_t driver_unknown_op(void);

/* A better program is there: the host should call prepare again. */
void driver_improves(struct driver_program *program);

/* Waits report a failure of the command with this number (FRIT_ALL_COMMANDS: it has none) in the
 * submit with this timeline value. */
void driver_fails(struct driver *driver, frit_status status, uint64_t value, uint32_t command,
                  uint64_t cookie);

/* Opens a device on it; device_destroy ends it. */
frit_device *driver_device(struct driver *driver, int64_t max_ops);
/* Likewise a second device of the driver, "scripted:1", with a script of its own. */
frit_device *driver_peer(struct driver *driver, struct driver *peer);

#endif
