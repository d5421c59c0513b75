/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the emitter share: the phase being written, and how a value of the IR is one of
 * SPIR-V.  A thread has `each` lanes (emit/shape.h); a value is `each` ids, all the same one where
 * it is uniform. */
#ifndef EMIT_SPIRV_EMIT_H
#define EMIT_SPIRV_EMIT_H

#include "emit/shape.h"
#include "emit/spirv/build.h"
#include "emit/spirv/spirv.h"
#include "ir/facts.h"
#include "ir/verify.h"

/* A loop that is open. */
struct open_loop {
    uint32_t head, merge, resume; /* labels */
    uint32_t counter;
    uint32_t phis; /* where in BODY they begin: the counter's, then those of the loop */
};

/* Code that runs under a condition. */
struct region {
    uint32_t from; /* label of the block from which the end is reached when the code is not run */
    uint32_t merge;
    uint32_t patch; /* in BODY: where the branch goes when the condition is false */
};
struct emit {
    struct spv_build build;
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct spirv_target *target;
    bool aligned;
    frit_err *err;
    frit_status status; /* of the first refusal */

    struct facts facts;
    struct arena arena; /* of the arrays below */
    struct shape shape;
    struct spirv_code *code;

    uint32_t *ids;                             /* each per instruction */
    struct open_loop loops[KIR_MAX_DEPTH + 1]; /* by level */
    struct region ifs[KIR_MAX_DEPTH + 1];
    uint32_t block;  /* label of the block being written */
    uint32_t words;  /* id of the launch block's address, where it is outside */
    uint32_t thread; /* ids, 0: not read yet */
    uint32_t group[3];
    uint32_t zeros[KIR_TYPES][2];          /* of each type, without and with a sign */
    uint32_t *given;                       /* per argument, then per parameter */
    uint32_t *tiles;                       /* variables: `each` per tile */
    uint32_t scratch[2];                   /* workgroup memory for exchanges, of 32 and 64 bits */
    uint32_t push, local_index, workgroup; /* variables */
    uint32_t glsl;                         /* import */
    uint32_t *globals;                     /* variables of the entry point */
    uint32_t n_globals;
    bool has_f64, has_f16;
};

/* ---- emit.c ---- */

void emit_refuse(struct emit *e, const char *what);
static inline uint32_t emit_at(const struct emit *e, uint32_t value, uint32_t j)
{
    return e->ids[value * e->shape.each + j];
}
static inline bool emit_uniform(const struct emit *e, uint32_t value)
{
    return e->facts.of[value].kind == FACT_UNIFORM;
}
static inline uint32_t emit_run(const struct emit *e, uint32_t value)
{
    return shape_run(&e->shape, value);
}
static inline uint32_t emit_type_at(const struct emit *e, uint32_t value)
{
    return e->phase->inst[value].type;
}
/* All lanes' ids of an instruction. */
void emit_set(struct emit *e, uint32_t at, uint32_t id);
static inline void emit_set_at(struct emit *e, uint32_t at, uint32_t j, uint32_t id)
{
    e->ids[at * e->shape.each + j] = id;
}
/* Those of the run that begins at j. */
static inline void emit_set_run(struct emit *e, uint32_t at, uint32_t j, uint32_t id)
{
    for (uint32_t k = 0; k < emit_run(e, at); k++)
        emit_set_at(e, at, j + k, id);
}

uint32_t emit_int(struct emit *e, uint32_t bits);
uint32_t emit_type(struct emit *e, uint32_t kir_type);
uint32_t emit_bool(struct emit *e);
uint32_t emit_u32(struct emit *e, uint32_t value);
uint32_t emit_u64(struct emit *e, uint64_t value);
uint32_t emit_const(struct emit *e, uint32_t kir_type, uint64_t bits);
/* A variable of the module, or (class FUNCTION) of the function. */
uint32_t emit_variable(struct emit *e, enum spv_class class, uint32_t type);
uint32_t emit_pointer(struct emit *e, enum spv_class class, uint32_t type);

/* An instruction of the body, with a result; `EMIT(e, op, type, operands...)`. */
#define EMIT(e, op, type, ...) spv_make(&(e)->build, SPV_IN_BODY, op, type, SPV(__VA_ARGS__))
/* One without. */
#define EMIT_PUT(e, op, ...) spv_put(&(e)->build, SPV_IN_BODY, op, SPV(__VA_ARGS__))

/* Address of an argument's element 0, word of a parameter: 64 bits, read at the entry. */
uint32_t emit_given(struct emit *e, uint32_t number);
/* A word of the push constants after the head. */
uint32_t emit_push_word(struct emit *e, uint32_t number);
uint32_t emit_thread(struct emit *e);
uint32_t emit_group(struct emit *e, uint32_t dim);
/* A zero that compilers do not see: they take x + 0 and x * 0 for x and 0. */
uint32_t emit_zero(struct emit *e, uint32_t kir_type, bool minus);
/* The lane that this thread has at j. */
uint32_t emit_lane(struct emit *e, uint32_t j);

/* Code that runs where `condition` is true, up to emit_end. */
struct region emit_begin(struct emit *e, uint32_t condition);
/* What runs where it is false; region.from is then what the caller says. */
void emit_otherwise(struct emit *e, struct region *region);
void emit_label(struct emit *e, uint32_t label);
void emit_end(struct emit *e, const struct region *region);

#endif
