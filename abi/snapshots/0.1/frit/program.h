/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs: what can be launched, made by `op_program` for one op or by a fuser for a block of ops.
 *
 * Life of a launch: `describe` once, `prepare` once per signature (the host caches the answer),
 * `compile` if prepare asked for it, then LAUNCH commands in `submit`.  A program knows no buffer
 * and no size. */
#ifndef FRIT_PROGRAM_H
#define FRIT_PROGRAM_H

#include <frit/host.h>
#include <frit/op.h>

/* ---- what the host knows when it prepares ---- */

/* One tensor argument, without address or contents.  Order: the program's inputs, then its outputs.
 */
typedef struct frit_arg_sig {
    uint32_t dtype;
    uint32_t quant; /* quantisation descriptor, 0 = none */
    uint32_t rank;
    uint32_t align_log2; /* the start is at least so aligned */
    uint64_t tail;       /* bytes usable past the end, 0..tail_bytes of the device */
    uint64_t flags;      /* FRIT_ARG_* */
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK]; /* in elements, signed, 0 = broadcast; outputs: what the host
                                       would give */
} frit_arg_sig;

/* Classes of scalars and bounds on which code may be specialised. */
enum {
    FRIT_SCALAR_CLASS_OTHER = 0,
    FRIT_SCALAR_CLASS_ZERO,
    FRIT_SCALAR_CLASS_ONE,
    FRIT_SCALAR_CLASS_MINUS_ONE,
    FRIT_SCALAR_CLASS_TWO,
    FRIT_SCALAR_CLASS_HALF,
    FRIT_SCALAR_CLASS_INTEGER
};

typedef struct frit_signature {
    uint32_t struct_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t arg_stride; /* bytes between arguments */
    uint32_t n_scalars;
    uint32_t index_width; /* 32 or 64: of a signed integer for all element offsets of an argument */
    uint64_t flags;
    const frit_arg_sig *args;      /* n_in + n_out; absent operands have dtype 0 */
    const uint8_t *scalar_classes; /* n_scalars of FRIT_SCALAR_CLASS_* */
    const uint8_t *bound_classes;  /* n_bounds of them */
    uint32_t n_bounds;
    uint32_t reserved;
} frit_signature;

/* ---- what prepare answers ---- */

enum { FRIT_MAX_PHASES = 8, FRIT_MAX_OUTPUTS = 16, FRIT_MAX_DERIVED = 4 };

typedef struct frit_phase {
    uint32_t grid[3];
    uint32_t group[3];
} frit_phase;

typedef struct frit_output_spec {
    uint64_t bytes; /* to allocate, 0 = dense storage of the dims */
    uint64_t align; /* 0 = the device's */
    uint64_t alias; /* bit i: may take the memory of input i, which dies here: each element is
                     * written only after the last read of its byte range */
    uint64_t flags; /* bit 0: `strides` is meant; otherwise dense row-major */
    int64_t strides[FRIT_MAX_RANK];
} frit_output_spec;

typedef struct frit_derived_spec {
    uint64_t tag; /* says which derivation */
    uint64_t bytes;
    uint32_t arg; /* of this operand */
    uint32_t reserved;
} frit_derived_spec;

/* Filled by prepare into the host's zeroed struct. */
typedef struct frit_launch_spec {
    uint32_t struct_size;
    uint32_t n_phases;
    uint32_t n_derived;
    uint32_t workspace_zeroed; /* 1: the workspace must hold zeros */
    uint64_t flags;
    uint64_t workspace_bytes;
    uint64_t workspace_align;
    uint64_t predicted_bytes;
    uint64_t predicted_flops;
    uint64_t driver[4]; /* the driver's own, handed back at launch */
    frit_phase phases[FRIT_MAX_PHASES];
    frit_output_spec outputs[FRIT_MAX_OUTPUTS];
    frit_derived_spec derived[FRIT_MAX_DERIVED];
    int64_t wanted_strides[FRIT_MAX_RANK]; /* FRIT_PREPARE_RELAYOUT: for operand `wanted_arg` */
    uint32_t wanted_arg;
    uint32_t reserved;
} frit_launch_spec;

/* The bytes that a compiled form depends on, beside the program's own digest and the candidate. */
typedef struct frit_variant {
    uint32_t struct_size;
    uint32_t n_bytes;
    uint8_t bytes[1016];
} frit_variant;

/* Positive answers of prepare. */
enum {
    FRIT_PREPARE_NEEDS_COMPILE = 1, /* spec and variant are valid; compile, then launch */
    FRIT_PREPARE_RELAYOUT = 2 /* wants `wanted_strides` for `wanted_arg`; ask again with them */
};

enum { FRIT_NUMERIC_EXACT = 0, FRIT_NUMERIC_REORDERED = 1, FRIT_NUMERIC_REDUCED = 2 };

typedef struct frit_candidate {
    uint32_t struct_size;
    uint32_t version;
    uint32_t group;         /* groups are tried whole, in order */
    int32_t priority;       /* inside the group, higher first */
    uint32_t numeric_class; /* FRIT_NUMERIC_*: against the first candidate */
    uint32_t reserved;
    frit_str identity; /* stable text, never an index; lives as long as the program */
} frit_candidate;

typedef struct frit_program_info {
    uint32_t struct_size;
    uint32_t n_candidates;
    uint32_t candidate_stride;
    uint32_t generation; /* grows when better code is ready */
    uint32_t n_ops;      /* covered */
    uint32_t reserved;
    uint64_t flags;
    frit_str name;
    const frit_candidate *candidates; /* lives as long as the program */
} frit_program_info;

/* ---- commands ---- */

#define FRIT_ARG_READ        0x01u
#define FRIT_ARG_WRITE       0x02u
#define FRIT_ARG_CONSTANT    0x04u
#define FRIT_ARG_IMPORTED    0x08u
#define FRIT_ARG_PREASSIGNED 0x10u
#define FRIT_ARG_NOALIAS     0x20u
#define FRIT_ARG_START       0x40u /* the range starts at the beginning of its memory */

/* A tensor argument of a launch. */
typedef struct frit_arg {
    void *memory;    /* of the driver, from alloc; NULL: an absent operand, or no elements */
    uint64_t offset; /* bytes from the start of memory to the range */
    uint64_t extent; /* bytes of the range that the elements lie in */
    uint64_t
        origin; /* bytes from the start of the range to element 0 (not 0 with negative strides) */
    uint32_t dtype;
    uint32_t quant;
    uint32_t rank;
    uint32_t align_log2;
    uint64_t tail;
    uint64_t flags;      /* FRIT_ARG_* */
    uint64_t content_id; /* 0 unknown; a new number after every write */
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
} frit_arg;

typedef struct frit_derived {
    void *memory;
    uint64_t offset;
    uint32_t fill; /* 1: derive it now; 0: it is valid */
    uint32_t reserved;
} frit_derived;

struct frit_program;
struct frit_cmd; /* backend.h */

/* Borrowed for the call of submit.
 *
 * args: of a program for one op, argument i is operand i of the row, then its outputs; a scalar or
 * absent operand and an output that nobody wants keep their places with dtype 0 and no memory.
 * Operands come with their own dims: where the row broadcasts, as all of class MAP do, to the
 * output's, aligned right.  One value may be several operands (add of x with itself), but is one
 * argument of a fuser's program.  Inputs may lie in one another's memory, as views do; an output
 * lies apart from all other arguments, or begins where inputs begin that its `alias` names.
 * Types, dims and the classes of scalars and bounds are those of the signature that prepare
 * answered with `spec`, and alignment and tail no less; so are strides, but for outputs that the
 * spec gives strides of its own.  One spec serves any number of such launches.
 * scalars: for each op in order, its scalar operands in the row's order, then its LAUNCH fields of
 * type REAL in the record's order, then for a SEEDED row the seed and op counter | stream ordinal
 * << 32 (U64). Operands are F64 for a float type, U64 for an unsigned one, else I64; one in the
 * place of a tensor is already rounded to its type.
 * bounds: for each op in order, its other LAUNCH fields in the record's order, each flattened over
 * operand 0's rank: SLICES to {start, stop, step} per dim, all resolved and in range (a negative
 * step that runs to the front stops at FRIT_SLICE_END); DIMS to one number per dim. */
typedef struct frit_launch {
    uint32_t struct_size;
    uint32_t n_args;
    uint32_t arg_stride;
    uint32_t n_scalars;
    uint32_t n_bounds;
    uint32_t n_derived;
    uint64_t cookie; /* names the op in later failures */
    const struct frit_program *program;
    const frit_launch_spec *spec;
    const frit_variant *variant;
    const frit_arg *args; /* inputs, then outputs */
    const frit_scalar *scalars;
    const int64_t *bounds;
    const frit_derived *derived;
    void *workspace; /* memory */
    uint64_t workspace_offset;
    uint32_t candidate;
    uint32_t reserved;
} frit_launch;

/* ---- the table ---- */

#define FRIT_PROGRAM_TABLE "frit.program/1"

/* Required: describe, prepare, destroy. */
typedef struct frit_program_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  required */
    frit_status (*describe)(void *self, frit_program_info *out, frit_err *err);
    /* [any] +nonblock  required; pure.  FRIT_OK, a FRIT_PREPARE_*, or FRIT_UNSUPPORTED: not with
     * these sizes and layouts, for a fuser's program too.  The host then asks the next candidate;
     * with no more of them it runs a block's ops one by one, and a single op as core ops or on
     * another device, and keeps the answer until the generation grows. */
    frit_status (*prepare)(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err);
    /* [any] +mayblock  NULL: prepare never answers NEEDS_COMPILE.  The host calls it on one of
     * its background threads and runs a block's ops one by one meanwhile; `cancel` then asks it to
     * stop when nobody has the program any more or the device closes.  Or it calls it on the thread
     * that waits for it, with `cancel` NULL: for a single op, where much lies between a block's
     * ops, and where its user wants that (`[fusion] compile = wait`).  Launches come with the
     * variant: keep the code by it. Code that should build and does not is FRIT_INTERNAL, whatever
     * the compiler calls it; FRIT_UNSUPPORTED says, as in prepare, that the program is not for this
     * signature. */
    frit_status (*compile)(void *self, uint32_t candidate, const frit_variant *variant,
                           const frit_cancel *cancel, frit_err *err);
    /* [object] +nonblock  required; no launch of it is pending */
    void (*destroy)(void *self);
    /* [any] +nonblock  NULL: it is not saved.  Writes at most *n_bytes bytes (0: `bytes` may be
     * NULL) and sets *n_bytes to the true number; from_state of its fuser takes them in another
     * process. */
    frit_status (*to_state)(void *self, void *bytes, uint64_t *n_bytes, frit_err *err);
    /* [any] +nonblock  Required where the program is not of the device's own driver, else NULL:
     * writes at least one and at most `capacity` commands (DISPATCH, BARRIER) of the host's zeroed
     * ones that do what `launch` says, and their true count, which is the same for every launch of
     * a spec.  They may point at `launch`, which lives until submit has returned, and at what lives
     * as long as the program. */
    frit_status (*record)(void *self, const frit_launch *launch, struct frit_cmd *cmds,
                          uint32_t capacity, uint32_t *count, frit_err *err);
} frit_program_table;

/* A program as it crosses the border: filled by its maker, owned by the host until destroy. */
typedef struct frit_program {
    uint32_t struct_size;
    uint32_t reserved;
    const frit_program_table *table;
    void *self;
} frit_program;

FRIT_STATIC_ASSERT(sizeof(frit_arg_sig) == 160, "0.1");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_signature, scalar_classes) == 48, "0.1");
FRIT_STATIC_ASSERT(sizeof(frit_output_spec) == 96, "0.1");
FRIT_STATIC_ASSERT(sizeof(frit_arg) == 200, "0.1");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_launch, reserved) == 112, "0.1");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_program_table, destroy) == 40, "0.1");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_program_table, record) == 56, "0.1");

#endif
