/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plugin share.  An instance is constant once open, but for its counters. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include <stdatomic.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/fuser.h>
#include <frit/plugin.h>

#include "util/hosted.h"
#include "util/specs.h"

/* Rows of candidates.def. */
enum kind {
#define FAKE_CANDIDATE(name, class, percent, priority) KIND_##name,
#include "candidates.def"
    N_KINDS
};

struct kind_info {
    frit_str name;
    uint32_t numeric_class;
    int64_t percent;
    int32_t priority;
};

extern const struct kind_info kinds[N_KINDS];

/* N_KINDS: none has the name. */
uint32_t kind_find(frit_str name);

enum clock_kind { CLOCK_REAL, CLOCK_SIMULATED, CLOCK_NONE };

/* As options.c describes them. */
struct options {
    int64_t cost_ns, fast_calls, sleep_ms, refuse_after, refuse_size, split;
    int64_t workspace_bytes, memory_bytes, cache_bytes;
    int64_t version, devices, mib_ns, fuses, add_refuses;
    bool host_pointers, compiles, captures, means;
    enum clock_kind clock;
    frit_str fingerprint, log;
};

/* A candidate that is offered. */
struct offer {
    enum kind kind;
    int64_t percent;
};

struct instance {
    struct plug plug; /* the first, see plug_open */
    struct options options;
    struct offer offers[N_KINDS];
    uint32_t n_offers; /* >= 1 */
    int log;           /* descriptor, -1: none */
    frit_heap heap;
    atomic_uint_least64_t launches[N_KINDS], prepares[N_KINDS], compiles[N_KINDS];
    atomic_uint_least64_t priorities; /* calls of that slot */
    atomic_uint_least64_t replays;    /* of recordings */
    atomic_uint_least32_t programs;   /* that were made */
    uint32_t number;                  /* of the instance in its process */
};

/* Reads all options into the instance, whose plug is set. */
frit_status options_read(void *instance, const frit_host_options *options, frit_err *err);
enum { N_OPTIONS = 22 };
extern const frit_option options_list[N_OPTIONS];

/* ---- programs ---- */

enum { DESCRIBES = 2, IDENTITY_BYTES = 32, MAX_STEPS = 8, MAX_DEAD = 3 };

#define NO_VALUE UINT32_MAX /* a scalar */

/* An op of a fused program. */
struct step {
    uint32_t op, in[2], out, n_dead, dead[MAX_DEAD];
};

struct program {
    struct instance *instance;
    uint32_t op; /* FRIT_OP_LIMIT: fused */
    uint32_t n_offers;
    const struct offer *offers;
    uint32_t n_steps, n_in, n_args; /* fused */
    struct step steps[MAX_STEPS];
    uint32_t args[3 * MAX_STEPS];   /* their values, operands first */
    bool reduces;                   /* sum and mean */
    bool is_reduced[FRIT_MAX_RANK]; /* of these: the operand's dims */
    bool keeps;                     /* likewise: reduced dims stay with extent 1 */
    struct specs specs;
    atomic_uint_least32_t describes;
    /* What describe returns in turn: the same, but for what changes_identity and changes_version
     * change. */
    frit_candidate list[DESCRIBES][N_KINDS];
    char identity[DESCRIBES][IDENTITY_BYTES]; /* of changes_identity */
    char host[IDENTITY_BYTES];                /* of changes_host */
    atomic_uint_least64_t launches[N_KINDS];  /* by candidate */
    atomic_uint_least64_t operand;            /* where the first one of the last launch lies */
    atomic_bool compiled[N_KINDS];
};

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
/* The program of the ops of a fuser. */
frit_status program_fuse(struct instance *instance, const struct step *steps, uint32_t n_steps,
                         frit_program *out, frit_err *err);
/* NULL: a program of somebody else. */
struct program *program_of(const frit_launch *launch);

extern const frit_fuser_table fuser_table;

/* Of a fused program: finds its arguments, once, and runs it. */
void fused_list_args(struct program *program);
void fused_compute(const struct program *program, const frit_launch *launch);

/* ---- launches ---- */

/* What the next launch takes, in nanoseconds; counts it. */
uint64_t launch_charge(const frit_launch *launch);

extern const struct hosted_driver launch_driver;

/* Writes the results of the program by candidate `kind`. */
void compute(const struct program *program, const frit_launch *launch, enum kind kind);
/* Bytes of all arguments, and elements of the largest one. */
uint64_t compute_bytes(const frit_launch *launch);
int64_t compute_size(const frit_launch *launch);
float compute_scalar(const frit_launch *launch, uint32_t i);
bool compute_is_in_place(const frit_launch *launch);

/* ---- devices ---- */

struct device {
    struct hosted hosted; /* the first, see util/hosted.h */
    struct instance *instance;
    atomic_uint_least64_t ticks; /* of the simulated clock */
};

extern const frit_backend device_backend;
extern const frit_profile_table device_profile;
extern const frit_capture_table capture_table;

#endif
