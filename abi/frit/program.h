/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Programs: what can be launched, made by `op_program` for one op or by a fuser for a block of ops.
 *
 * Life of a launch: `describe` once, `prepare` once per signature (the host caches its result),
 * `compile` if prepare returned NEEDS_COMPILE, then LAUNCH commands in `submit`.  A program knows
 * no buffer and no size. */
#ifndef FRIT_PROGRAM_H
#define FRIT_PROGRAM_H

#include <frit/host.h>
#include <frit/op.h>

/* ---- relative ops ---- */

/* The form in which drivers and fusers get ops.  A relative op carries no identity, no extent and
 * no scalar value: values are dense numbers, extents are numbers of "the same extent", scalars are
 * slots.  What a plan may depend on is here and nothing else. */

/* An operand of a relative op. */
typedef struct frit_operand {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t dtype; /* of the tensor; of the scalar: the type it is used as */
    uint32_t value; /* TENSOR: number of the value; SCALAR: number of the launch scalar */
    uint32_t rank;  /* TENSOR */
    /* TENSOR, per dim: 0 = extent 0, 1 = extent 1, n > 1 = the n-th other extent of this op list,
     * the same number wherever the extent is the same. */
    uint32_t extent[FRIT_MAX_RANK];
} frit_operand;

/* One op of a list that the host passes to a driver or fuser.  Borrowed for the call. */
typedef struct frit_op_desc {
    uint32_t struct_size;
    uint32_t id;  /* row of ops.def, or >= FRIT_OP_CUSTOM */
    uint32_t rev; /* meaning that the host has in mind */
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_dead;
    uint32_t operand_stride; /* bytes between operands, in and out */
    uint32_t n_extra; /* launch words the host adds itself: 2 for SEEDED rows, see frit_launch */
    uint64_t flags;   /* no bit is known yet, see types.h */
    const frit_operand *in;  /* in the row's order; absent ones are marked */
    const frit_operand *out; /* XOUT outputs that nobody wants are ABSENT */
    const void *attrs;    /* struct frit_attrs_<record> of the row, or the record that a custom op's
                             fields make; only KEY fields are set, filled in and without negatives
                             as attrs.def says per type */
    const uint32_t *dead; /* numbers of the values that die with this op */
    frit_str name;        /* of a custom op, valid until the process ends; empty for a row */
} frit_op_desc;

/* Operand `i` of those from `first` on, which is `in` or `out` of the op. */
static inline const frit_operand *frit_operand_at(const frit_op_desc *op, const frit_operand *first,
                                                  uint32_t i)
{
    return (const frit_operand *)(const void *)((const char *)first +
                                                (size_t)i * op->operand_stride);
}

FRIT_STATIC_ASSERT(sizeof(frit_operand) == 48, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_op_desc, dead) == 72, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_op_desc, name) == 88, "0.2");

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
    uint64_t flags;       /* no bit is known yet, see types.h */
    const frit_arg_sig *args;      /* n_in + n_out; absent operands have dtype 0 */
    const uint8_t *scalar_classes; /* n_scalars of FRIT_SCALAR_CLASS_* */
    const uint8_t *bound_classes;  /* n_bounds of them */
    uint32_t n_bounds;
    uint32_t reserved;
} frit_signature;

/* Argument `i`, inputs first. */
static inline const frit_arg_sig *frit_arg_sig_at(const frit_signature *sig, uint32_t i)
{
    return (const frit_arg_sig *)(const void *)((const char *)sig->args +
                                                (size_t)i * sig->arg_stride);
}

/* ---- what prepare answers ---- */

/* For people, and for the host to check against the device's limits. */
typedef struct frit_phase {
    uint32_t grid[3];  /* groups per axis */
    uint32_t group[3]; /* lanes of a group per axis */
} frit_phase;

typedef struct frit_output_spec {
    uint64_t bytes; /* to allocate, 0 = dense storage of the dims */
    uint64_t align; /* 0 = the device's */
    /* Numbers of inputs whose memory it may take, where they die here: each of its elements is
     * written only after the last read of its byte range. */
    const uint32_t *alias;
    uint32_t n_alias;
    uint32_t strided; /* 1: `strides` is meant; 0: dense row-major */
    int64_t strides[FRIT_MAX_RANK];
} frit_output_spec;

/* Memory that holds something made from an operand alone: packed weights, a table. */
typedef struct frit_derived_spec {
    uint64_t tag;   /* which derivation: the same for equal bytes, whatever the program */
    uint64_t bytes; /* >= 1 */
    uint32_t arg;   /* the input that it is made from */
    uint32_t reserved;
} frit_derived_spec;

/* Filled by prepare into the host's zeroed struct.  What it points to belongs to the program and is
 * constant until spec_release of it. */
typedef struct frit_launch_spec {
    uint32_t struct_size;
    uint32_t n_phases;
    uint32_t n_outputs; /* described, from output 0 on; those after them are as if all zero */
    uint32_t output_stride;
    uint32_t n_derived;
    uint32_t derived_stride;
    uint32_t workspace_zeroed; /* 1: the workspace must hold zeros */
    uint32_t wanted_arg;       /* FRIT_PREPARE_RELAYOUT: number of an input */
    uint64_t workspace_bytes;
    uint64_t workspace_align;
    uint64_t driver[4]; /* the program's own, handed back at launch */
    const frit_phase *phases;
    const frit_output_spec *outputs;
    const frit_derived_spec *derived;
    const int64_t *wanted_strides; /* FRIT_PREPARE_RELAYOUT: for operand `wanted_arg` */
    /* FRIT_PREPARE_NEEDS_COMPILE: about the nanoseconds that compile takes, worked out from sizes;
     * what takes longest is compiled first.  0: unknown. */
    uint64_t compile_ns;
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
    FRIT_PREPARE_RELAYOUT = 2 /* wants `wanted_strides` for `wanted_arg`; prepare again with them */
};

typedef struct frit_candidate {
    uint32_t struct_size;
    uint32_t version;       /* another one makes what was measured of it void */
    uint32_t numeric_class; /* FRIT_NUMERIC_*: the host skips those that its user does not allow; of
                               the first one only RELAXED counts: its bits differ from run to run */
    uint32_t reserved;
    frit_str identity; /* stable text, never an index; lives as long as the program */
} frit_candidate;

typedef struct frit_program_info {
    uint32_t struct_size;
    uint32_t n_candidates;
    uint32_t candidate_stride;
    uint32_t n_ops; /* covered */
    frit_str name;
    const frit_candidate *candidates; /* lives as long as the program */
    /* Grows, by atomic writes, when `generation` of any candidate and variant of the program has
     * grown; programs may share one.  The host reads it before each launch.  Lives as long as the
     * program; NULL: code never gets better once it is compiled. */
    const uint64_t *serial;
} frit_program_info;

/* ---- commands ---- */

#define FRIT_ARG_READ        0x1u
#define FRIT_ARG_WRITE       0x2u
#define FRIT_ARG_PREASSIGNED 0x4u /* an output whose memory the host's user chose */
#define FRIT_ARG_START       0x8u /* the range starts at the beginning of its memory */

/* A tensor argument of a launch. */
typedef struct frit_arg {
    frit_memory *memory; /* from alloc; NULL: an absent operand, or no elements */
    uint64_t offset;     /* bytes from the start of memory to the range */
    uint64_t extent;     /* bytes of the range that the elements lie in */
    uint64_t
        origin; /* bytes from the start of the range to element 0 (not 0 with negative strides) */
    uint32_t dtype;
    uint32_t rank;
    uint32_t align_log2;
    uint32_t reserved;
    uint64_t tail;
    uint64_t flags; /* FRIT_ARG_* */
    /* Given for operands that a spec derives from; 0 unknown.  Of one place (memory, offset, dims,
     * strides) and with one number: the same elements.  A write gives another number, never used
     * before in the process. */
    uint64_t content_id;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
} frit_arg;

/* Memory for a derivation, as the spec requires it.  The host keeps it beside the operand while
 * that has its contents, so that a later launch finds it valid. */
typedef struct frit_derived {
    frit_memory *memory;
    uint64_t offset;
    uint32_t fill; /* 1: derive it in this launch, before it is used; 0: it is valid, and only
                    * read: another launch may read it, too */
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
/* How long the launch takes decides between candidates: a driver whose code gets better with time
 * runs the best that there will be, and may wait for it. */
#define FRIT_LAUNCH_TRIAL 0x1u

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
    const frit_derived *derived; /* as many, in the order, of the spec's */
    frit_memory *workspace;
    uint64_t workspace_offset;
    uint32_t candidate;
    uint32_t reserved;
    uint64_t flags; /* FRIT_LAUNCH_*; those that a driver does not know change nothing */
} frit_launch;

/* Argument `i`, inputs first. */
static inline const frit_arg *frit_arg_at(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

/* ---- the table ---- */

#define FRIT_PROGRAM_TABLE "frit.program/1"

/* Required: describe, prepare, destroy. */
typedef struct frit_program_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  required */
    frit_status (*describe)(void *self, frit_program_info *out, frit_err *err);
    /* [any] +nonblock  required; pure.  FRIT_OK, a FRIT_PREPARE_*, or FRIT_UNSUPPORTED: not with
     * these sizes and layouts, for a fuser's program too.  The host then tries the next candidate;
     * with no more of them it runs a block's ops one by one, and a single op as core ops or on
     * another device.  It keeps the answer as long as it likes, at most until the generation grows.
     */
    frit_status (*prepare)(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err);
    /* [any] +mayblock  NULL: prepare never answers NEEDS_COMPILE.  The host calls it on one of
     * its background threads and runs a block's ops one by one meanwhile; `cancel` requests it to
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
    /* [any] +nonblock  NULL: what specs point to lives as long as the program.  The host has
     * forgotten a spec that prepare filled, once for each positive answer and before `destroy`; no
     * launch of it is pending.  `compile` and `generation` are called with variants of specs that
     * are not released only. */
    void (*spec_release)(void *self, const frit_launch_spec *spec);
    /* [any] +nonblock  NULL: always 0.  Grows when prepare or compile of this candidate and variant
     * would give better code than before; then the host calls prepare again. */
    uint64_t (*generation)(void *self, uint32_t candidate, const frit_variant *variant);
    /* [any] +nonblock  NULL: always 0.  How good the candidate is for a signature, by arithmetic
     * alone: where nothing was measured the host prepares the highest first, of equal ones the
     * first.  Negative: the candidate is not offered for the signature; of the first one that is
     * not heeded. */
    int32_t (*priority)(void *self, uint32_t candidate, const frit_signature *sig);
} frit_program_table;

/* A program as it crosses the border: filled by its maker, owned by the host until destroy. */
typedef struct frit_program {
    uint32_t struct_size;
    uint32_t reserved;
    const frit_program_table *table;
    void *self;
} frit_program;

FRIT_STATIC_ASSERT(sizeof(frit_arg_sig) == 160, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_signature, n_bounds) == 60, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_output_spec) == 96, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_derived_spec) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_launch_spec, wanted_strides) == 112, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_candidate, identity) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_program_info, serial) == 48, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_arg) == 200, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_launch, reserved) == 112, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_launch, flags) == 120, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_program_table, destroy) == 40, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_program_table, priority) == 80, "0.2");

#endif
