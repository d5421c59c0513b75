/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `null` through its tables, as the loader gives them, and what a test hands to them:
 * memory, commands, a block of ops, launches. */
#ifndef TESTS_FAKE_NULL_RIG_H
#define TESTS_FAKE_NULL_RIG_H

#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "fake/null/stats.h"
#include "host/load/rig.h"

enum { MAX_SETTINGS = 8 };

struct rig_null {
    struct rig rig;
    const struct plugin *plugin;
    const frit_backend *backend;
    const null_stats *stats;
    void *device;
    frit_err err;
};

static inline const char *null_path(void)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/null/libfrit-null.so", rig_fake_dir());
    return path;
}

/* `options`: pairs of name and value, NULL after the last. */
static inline const struct plugin *load(struct rig_null *n, const char *const *options)
{
    frit_setting settings[MAX_SETTINGS + 2] = {{"plugin.null", "library", null_path()}};
    static char keys[MAX_SETTINGS][64];

    for (int i = 0; options[2 * i]; i++) {
        snprintf(keys[i], sizeof(keys[i]), "option.%s", options[2 * i]);
        settings[i + 1] = (frit_setting){"plugin.null", keys[i], options[2 * i + 1]};
    }
    memset(n, 0, sizeof(*n));
    n->err.struct_size = sizeof(n->err);
    assert_int_equal(rig_open(&n->rig, settings), FRIT_OK);
    n->plugin = rig_plugin(&n->rig, "null");
    return n->plugin;
}

static inline void begin(struct rig_null *n, const char *const *options)
{
    const frit_open_params params = {.struct_size = sizeof(params)};

    load(n, options);
    assert_int_equal(n->plugin->reason, FRIT_REASON_NONE);
    n->backend = &n->plugin->backend;
    n->stats = n->plugin->root->get_interface(n->plugin->instance, FRIT_STR(NULL_STATS));
    assert_non_null(n->stats);
    assert_int_equal(n->backend->device_open(n->plugin->instance, 0, &params, &n->device, &n->err),
                     FRIT_OK);
}

/* Names and values, then NULL. */
#define BEGIN(n, ...) begin(n, (const char *const[]){__VA_ARGS__})

static inline uint64_t stat(const struct rig_null *n, const char *name)
{
    return n->stats->get(n->plugin->instance, (frit_str){name, strlen(name)});
}

static inline void end(struct rig_null *n)
{
    n->backend->device_close(n->device);
    assert_int_equal(stat(n, "memory_now"), 0);
    assert_int_equal(stat(n, "programs_now"), 0);
    assert_int_equal(stat(n, "specs_now"), 0);
    assert_int_equal(stat(n, "fusers_now"), 0);
    assert_int_equal(stat(n, "kernels_now"), 0);
    rig_close(&n->rig);
}

static inline frit_memory *memory(struct rig_null *n, uint64_t bytes)
{
    frit_alloc_desc desc = {.struct_size = sizeof(desc), .bytes = bytes, .align = 64};
    frit_allocation out = {.struct_size = sizeof(out)};

    assert_int_equal(n->backend->alloc(n->device, &desc, &out, &n->err), FRIT_OK);
    return out.memory;
}

static inline frit_status submit(struct rig_null *n, const frit_cmd *cmds, uint32_t count,
                                 uint64_t *value)
{
    return n->backend->submit(n->device, NULL, cmds, count, sizeof(*cmds), NULL, 0, value, &n->err);
}

static inline void await(struct rig_null *n, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof(failure)};

    assert_int_equal(n->backend->wait(n->device, NULL, value, UINT64_MAX, &failure, &n->err),
                     FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
}

static inline uint64_t read_word(struct rig_null *n, frit_memory *buffer, uint64_t offset)
{
    frit_transfer from = {
        .struct_size = sizeof(from), .memory = buffer, .offset = offset, .bytes = 8};
    uint64_t word = 1, value = 0;

    assert_int_equal(n->backend->read(n->device, &from, &word, &value, &n->err), FRIT_OK);
    await(n, value);
    return word;
}

static inline frit_cmd fill(frit_memory *buffer, uint64_t offset, uint64_t pattern)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_FILL,
                      .dst = buffer,
                      .dst_offset = offset,
                      .bytes = 8,
                      .pattern = pattern,
                      .pattern_bytes = 8};
}

static const frit_cmd barrier = {.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};

/* ---- ops, blocks, launches ---- */

enum { DIM = 4, N_OPS = 4 };

/* %2 = add %0 %1; %3 = mul %2 scalar, %2 dies; %4 = reshape %3; %5 = matmul %3 %1 */
struct block {
    frit_operand operands[N_OPS][3];
    frit_op_desc ops[N_OPS];
    uint32_t dead;
};

static inline frit_operand tensor(uint32_t value)
{
    return (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = value, .rank = 1, .extent = {2}};
}

static inline void block_init(struct block *b)
{
    static const struct {
        uint32_t id, n_in, in[2], out;
    } rows[N_OPS] = {{FRIT_OP_add, 2, {0, 1}, 2},
                     {FRIT_OP_mul, 2, {2, 0}, 3},
                     {FRIT_OP_reshape, 1, {3, 0}, 4},
                     {FRIT_OP_matmul, 2, {3, 1}, 5}};

    memset(b, 0, sizeof(*b));
    b->dead = 2;
    for (int i = 0; i < N_OPS; i++) {
        frit_operand *at = b->operands[i];

        for (uint32_t k = 0; k < rows[i].n_in; k++)
            at[k] = tensor(rows[i].in[k]);
        at[2] = tensor(rows[i].out);
        b->ops[i] = (frit_op_desc){.struct_size = sizeof(frit_op_desc),
                                   .id = rows[i].id,
                                   .rev = 1,
                                   .n_in = rows[i].n_in,
                                   .n_out = 1,
                                   .operand_stride = sizeof(frit_operand),
                                   .in = at,
                                   .out = at + 2};
    }
    b->operands[1][1] = (frit_operand){.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32};
    b->ops[1].n_dead = 1;
    b->ops[1].dead = &b->dead;
}

struct prepared {
    frit_arg_sig sigs[4];
    frit_launch_spec spec;
    frit_variant variant;
};

/* As many f32 inputs and outputs as given, all alike. */
static inline frit_status prepare(struct rig_null *n, const frit_program *program, uint32_t n_in,
                                  uint32_t n_out, uint32_t n_scalars, struct prepared *out)
{
    static const uint8_t classes[4];
    frit_signature sig = {.struct_size = sizeof(sig),
                          .n_in = n_in,
                          .n_out = n_out,
                          .arg_stride = sizeof(frit_arg_sig),
                          .n_scalars = n_scalars,
                          .index_width = 32,
                          .args = out->sigs,
                          .scalar_classes = classes};

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < n_in + n_out; i++)
        out->sigs[i] = (frit_arg_sig){.dtype = FRIT_F32, .rank = 1, .dims = {DIM}, .strides = {1}};
    return program->table->prepare(program->self, 0, &sig, &out->spec, &out->variant, &n->err);
}

static inline void release(const frit_program *program, const struct prepared *p)
{
    program->table->spec_release(program->self, &p->spec);
}

static inline frit_program op_program(struct rig_null *n, const frit_op_desc *op)
{
    frit_program program = {.struct_size = sizeof(program)};

    assert_int_equal(n->backend->op_program(n->device, op, &program, &n->err), FRIT_OK);
    return program;
}

struct launch {
    frit_arg args[3];
    frit_launch launch;
    frit_cmd cmd;
};

/* A launch of the op `add` over 16 bytes at 0, 16 and 32 of the buffer. */
static inline void launch_init(struct launch *l, const frit_program *program,
                               const struct prepared *p, frit_memory *buffer)
{
    memset(l, 0, sizeof(*l));
    for (uint32_t i = 0; i < 3; i++)
        l->args[i] = (frit_arg){.memory = buffer,
                                .offset = 16ull * i,
                                .extent = 16,
                                .dtype = FRIT_F32,
                                .rank = 1,
                                .flags = i < 2 ? FRIT_ARG_READ : FRIT_ARG_WRITE,
                                .dims = {DIM},
                                .strides = {1}};
    l->launch = (frit_launch){.struct_size = sizeof(l->launch),
                              .n_args = 3,
                              .arg_stride = sizeof(frit_arg),
                              .cookie = 77,
                              .program = program,
                              .spec = &p->spec,
                              .variant = &p->variant,
                              .args = l->args};
    l->cmd =
        (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_LAUNCH, .launch = &l->launch};
}

#endif
