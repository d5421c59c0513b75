/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the emitter, and what its files share.  A thread has `per_thread` lanes
 * (emit/shape.h), so a value of the IR is that many SPIR-V ids, all equal if the value is uniform.
 */
#ifndef EMIT_SPIRV_EMIT_H
#define EMIT_SPIRV_EMIT_H

#include "emit/shape.h"
#include "emit/spirv/build.h"
#include "emit/spirv/spirv.h"
#include "ir/facts.h"
#include "ir/verify.h"

/* A loop whose end is not written yet. */
struct open_loop {
    uint32_t head, merge, resume; /* labels */
    uint32_t counter;
    uint32_t phis; /* word of BODY at which the phis begin: the counter's, then the loop's own */
};

/* An `each` whose end is not written yet: a loop over the components of a matrix. */
struct open_each {
    uint32_t head, resume, merge; /* labels */
    uint32_t counter, next;
    uint32_t element; /* pointer */
};

/* What a copy has loaded and not stored yet. */
struct open_copy {
    uint32_t pointer, value;
};

enum { EMIT_COPIES = 64 };

/* Code that runs under a condition. */
struct region {
    uint32_t from; /* label of the block that branches to `merge` when the code does not run */
    uint32_t merge;
    uint32_t patch; /* word of BODY: the label that is branched to when the condition is false */
};

struct emit {
    struct spv_build build;
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct spirv_target *target;
    bool aligned;
    frit_err *err;
    frit_status status; /* of the first emit_refuse */

    struct facts facts;
    struct arena arena; /* of the arrays below */
    struct shape shape;
    struct spirv_code *code;

    uint32_t *words; /* per id of an even lane: a word with its bits and those of the next lane,
                        where a load of 16-bit floats had it; 0: none.  NULL: not needed */
    uint32_t *ids;   /* per instruction, one for each lane of a thread */
    uint32_t stride; /* of ids: lanes of a thread; in an `each` the shape has one of them only */
    struct open_loop loops[KIR_MAX_DEPTH + 1]; /* by level */
    struct region ifs[KIR_MAX_DEPTH + 1];
    uint32_t block;         /* label of the block being written */
    uint32_t block_address; /* id; used if the launch block is not pushed whole */
    uint32_t thread;        /* this and `group`: ids; 0: not loaded yet */
    uint32_t group[3];
    uint32_t zeros[KIR_TYPES][2]; /* per type: 0, without and with the sign bit */
    uint32_t *launch_words;       /* ids, per argument, then per parameter; 0: not loaded yet */
    struct spirv_tile *tiles;
    uint32_t *fragments; /* variables: per fragment */
    struct open_each each;
    uint32_t n_copies;
    struct open_copy copies[EMIT_COPIES];
    uint32_t scratch[2];                   /* workgroup memory for exchanges, of 32 and 64 bits */
    uint32_t push, local_index, workgroup; /* variables */
    uint32_t glsl;                         /* id of the imported instruction set */
    uint32_t *globals;                     /* variables of the entry point */
    uint32_t n_globals;
    bool has_f64, has_f16;
    bool has_blocks; /* workgroup memory is in blocks with places */
};

/* ---- emit.c ---- */

/* Fails the phase, since the device lacks `what`; the first failure is kept. */
void emit_refuse(struct emit *e, const char *what);
static inline uint32_t emit_id(const struct emit *e, uint32_t value, uint32_t j)
{
    return e->ids[value * e->stride + j];
}
static inline bool emit_is_uniform(const struct emit *e, uint32_t value)
{
    return e->facts.of[value].kind == FACT_UNIFORM;
}
/* How many neighbouring lanes of a thread share an id. */
static inline uint32_t emit_run_length(const struct emit *e, uint32_t value)
{
    return shape_run(&e->shape, value);
}
static inline uint32_t emit_type_at(const struct emit *e, uint32_t value)
{
    return e->phase->inst[value].type;
}
/* Sets the id of an instruction for all lanes. */
void emit_set_all(struct emit *e, uint32_t at, uint32_t id);
static inline void emit_set_id(struct emit *e, uint32_t at, uint32_t j, uint32_t id)
{
    e->ids[at * e->stride + j] = id;
}
/* The same for the run of lanes that begins at j. */
static inline void emit_set_run(struct emit *e, uint32_t at, uint32_t j, uint32_t id)
{
    for (uint32_t k = 0; k < emit_run_length(e, at); k++)
        emit_set_id(e, at, j + k, id);
}

uint32_t emit_int_type(struct emit *e, uint32_t bits);
uint32_t emit_type(struct emit *e, uint32_t kir_type);
uint32_t emit_bool_type(struct emit *e);
uint32_t emit_u32(struct emit *e, uint32_t value);
uint32_t emit_u64(struct emit *e, uint64_t value);
uint32_t emit_const(struct emit *e, uint32_t kir_type, uint64_t bits);
/* Declares a variable: in the function if the class is FUNCTION, else in the module. */
uint32_t emit_variable(struct emit *e, enum spv_class class, uint32_t type);
uint32_t emit_pointer_type(struct emit *e, enum spv_class class, uint32_t type);
/* Memory of the workgroup for `count` elements of so many bytes, from `place` on where blocks have
 * places; else a variable of its own. */
uint32_t emit_shared(struct emit *e, uint32_t element, uint32_t bytes, uint32_t count,
                     uint32_t place);
/* A pointer to an element of it. */
uint32_t emit_shared_pointer(struct emit *e, uint32_t element, uint32_t variable, uint32_t at);
/* A block in memory of nothing but an array of elements of so many bytes. */
uint32_t emit_block_type(struct emit *e, uint32_t element, uint32_t bytes);

/* Adds an instruction with a result to the body and returns its id: EMIT(e, op, type, operands...).
 */
#define EMIT(e, op, type, ...) spv_make(&(e)->build, SPV_IN_BODY, op, type, SPV(__VA_ARGS__))
/* Adds an instruction without a result. */
#define EMIT_PUT(e, op, ...) spv_put(&(e)->build, SPV_IN_BODY, op, SPV(__VA_ARGS__))

/* Memory that other invocations may share: `bytes` it is aligned to, 0 for tiles. */
uint32_t emit_load(struct emit *e, uint32_t type, uint32_t pointer, uint32_t bytes);
void emit_store(struct emit *e, uint32_t pointer, uint32_t id, uint32_t bytes);
/* Memory operands of such an access into out[0 .. 2); returns their number. */
uint32_t emit_memory_operands(const struct emit *e, uint32_t bytes, uint32_t out[2]);

/* A 64-bit word of the launch block, loaded in the entry block: the address of element 0 of an
 * argument, or a parameter. */
uint32_t emit_launch_word(struct emit *e, uint32_t number);
/* A 64-bit word of the push constants, counted from the end of their head. */
uint32_t emit_push_word(struct emit *e, uint32_t number);
uint32_t emit_thread(struct emit *e);
uint32_t emit_group(struct emit *e, uint32_t dim);
/* A zero that compilers cannot recognise: they would replace x + 0 by x and x * 0 by 0. */
uint32_t emit_zero(struct emit *e, uint32_t kir_type, bool minus);
/* The number in the group of this thread's lane j. */
uint32_t emit_lane(struct emit *e, uint32_t j);

/* Begins code that runs where `condition` is true; emit_end_if ends it. */
struct region emit_if(struct emit *e, uint32_t condition);
/* Begins the code that runs where it is false; `from` is for the caller to set. */
void emit_else(struct emit *e, struct region *region);
void emit_label(struct emit *e, uint32_t label);
void emit_end_if(struct emit *e, const struct region *region);
/* Sets a word of BODY to an id. */
void emit_patch(struct emit *e, uint32_t where, uint32_t id);

#endif
