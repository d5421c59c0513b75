/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes in the place of saved plans.  The first byte says as what they are read: 0 a whole
 * file, 1 a plan, whose digest is put right, 2 the key, the plan and the sync plan of one row,
 * likewise.  Nothing is read or freed that must not be; a plan that is made of saved bytes is one
 * for the ops it was made for, whatever they say, and can be saved and made again; and after any
 * file a save comes back. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/str.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "plan/automaton.h"
#include "plan/blob.h"
#include "plan/key.h"
#include "plan/plan.h"
#include "plan/relative.h"
#include "plan/rows.h"
#include "plan/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AS_FILE, AS_PLAN, AS_ROW };
enum { PATIENCE_MS = 5000 };

#define check(condition) ((condition) ? (void)0 : abort())

/* ---- the ops that plans are looked for ---- */

enum { OPS = 7 };

static struct relative relative;

static uint32_t add_op(struct graph *graph, uint32_t op, uint32_t x, uint32_t y, uint32_t dead)
{
    const struct graph_operand in[] = {{.kind = FRIT_OPERAND_TENSOR, .value = x},
                                       {.kind = FRIT_OPERAND_TENSOR, .value = y}};
    const struct graph_call call = {.op = op, .n_in = y ? 2 : 1, .in = (void *)in};
    uint32_t out[FRIT_OP_MAX_OUT], n = graph->n_ops;

    check(graph_append(graph, &call, out, NULL) == FRIT_OK);
    check(relative_append(&relative, graph, n, &dead, dead != 0, NULL) == FRIT_OK);
    return out[0];
}

/* Two chains of maps that meet, with values that die and values that stay. */
static void make_ops(void)
{
    const struct op_type type = {.dtype = FRIT_F32, .rank = 2, .dims = {3, 4}};
    struct graph graph = {0};
    uint32_t x, a, b, c;

    if (relative.n_ops)
        return;
    check(graph_input(&graph, GRAPH_INPUT, NULL, &type, &x, NULL) == FRIT_OK);
    a = add_op(&graph, FRIT_OP_exp, x, 0, 0);
    b = add_op(&graph, FRIT_OP_neg, a, 0, 0);
    c = add_op(&graph, FRIT_OP_add, a, b, a);
    a = add_op(&graph, FRIT_OP_exp, b, 0, b);
    b = add_op(&graph, FRIT_OP_mul, a, c, 0);
    c = add_op(&graph, FRIT_OP_sqrt, b, 0, a);
    add_op(&graph, FRIT_OP_add, b, c, b);
    graph_fini(&graph);
    check(relative.n_ops == OPS);
}

/* ---- a fuser that takes any state ---- */

struct saved_program {
    uint64_t n_bytes;
    uint8_t bytes[];
};

static frit_status describe(void *self, frit_program_info *out, frit_err *err)
{
    (void)self;
    (void)err;
    out->n_ops = 1;
    return FRIT_OK;
}

static frit_status prepare(void *self, uint32_t candidate, const frit_signature *sig,
                           frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    (void)self;
    (void)candidate;
    (void)sig;
    (void)out;
    (void)variant;
    (void)err;
    return FRIT_UNSUPPORTED;
}

static frit_status to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct saved_program *program = self;

    (void)err;
    if (*n_bytes >= program->n_bytes && program->n_bytes)
        memcpy(bytes, program->bytes, program->n_bytes);
    *n_bytes = program->n_bytes;
    return FRIT_OK;
}

static const frit_program_table program_table = {.struct_size = sizeof(program_table),
                                                 .describe = describe,
                                                 .prepare = prepare,
                                                 .destroy = free,
                                                 .to_state = to_state};

/* Ops are never from the bytes: operands and attributes are as those of `ops` below. */
static frit_status from_state(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    struct saved_program *program = malloc(sizeof(*program) + n_bytes);

    (void)instance;
    (void)device;
    (void)name;
    (void)err;
    check(program != NULL);
    check(n_ops > 0 && n_ops <= OPS && ops && op_stride == sizeof(*ops));
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t number = 0;

        while (!relative_same_op(&ops[i], &relative.ops[number]))
            check(++number < OPS);
    }
    program->n_bytes = n_bytes;
    if (n_bytes)
        memcpy(program->bytes, bytes, n_bytes);
    out->table = &program_table;
    out->self = program;
    return FRIT_OK;
}

static const frit_fuser_table fuser_table = {.struct_size = sizeof(fuser_table),
                                             .from_state = from_state};

static const frit_fuser_device own = {.struct_size = sizeof(own), .same_plugin = 1};

static const struct store_fuser fuser = {
    .plugin = "p", .name = "f", .version = 1, .table = &fuser_table, .device = &own};

/* ---- the three readings ---- */

static bool same_text(const struct str *a, const struct str *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* Of a saved plan, over each number of ops. */
static void check_saved(const struct store_context *context, const struct plan *saved)
{
    for (uint32_t n = 1; n <= OPS; n++) {
        struct str first = {0}, second = {0};
        struct plan *plan, *bytes = NULL, *again = NULL;

        if (blob_rebuild(saved, context, &relative, n, &plan, NULL)) {
            check(plan == NULL);
            continue;
        }
        check(plan->n_ops == n && plan_verify(plan, NULL) == FRIT_OK);
        for (uint32_t i = 0; i < n; i++)
            check(relative_same_op(&plan->ops[i], &relative.ops[i]));
        check(blob_write(plan, context, &first, NULL) == FRIT_OK);
        check(blob_load(first.text, first.length, context, &bytes, NULL) == FRIT_OK);
        check(blob_rebuild(bytes, context, &relative, n, &again, NULL) == FRIT_OK);
        check(blob_write(again, context, &second, NULL) == FRIT_OK && same_text(&first, &second));
        plan_print(plan, &second);
        check(!second.failed);
        str_fini(&first);
        str_fini(&second);
        plan_unref(again);
        plan_unref(bytes);
        plan_unref(plan);
    }
}

/* Malloc'd: the bytes with their digest, of the exact size, so that a sanitizer sees its end. */
static uint8_t *seal(const uint8_t *data, size_t size, size_t *n_bytes)
{
    uint64_t digest = XXH3_64bits(data, size);
    uint8_t *bytes = malloc(size + sizeof(digest));

    check(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    memcpy(bytes + size, &digest, sizeof(digest));
    *n_bytes = size + sizeof(digest);
    return bytes;
}

static void check_plan(const struct store_context *context, const uint8_t *data, size_t size)
{
    struct plan *saved = NULL;
    size_t n_bytes;
    uint8_t *bytes = seal(data, size, &n_bytes);

    if (blob_load(bytes, n_bytes, context, &saved, NULL) == FRIT_OK)
        check_saved(context, saved);
    else
        check(saved == NULL);
    plan_unref(saved);
    free(bytes);
}

static struct automaton *load(const struct store_context *context, uint32_t *n_plans)
{
    struct automaton *automaton;
    struct store_loaded loaded;

    check(automaton_create(1 << 24, &automaton, NULL) == FRIT_OK);
    check(store_load(context, automaton, &loaded, NULL) == FRIT_OK);
    *n_plans = loaded.n_plans;
    return automaton;
}

static frit_status check_place(void *ctx, const struct automaton_place *place, frit_err *err)
{
    (void)err;
    if (place->plan)
        check_saved(ctx, place->plan);
    if (place->sync)
        check_saved(ctx, place->sync);
    return FRIT_OK;
}

static void check_places(struct store_context *context, struct automaton *automaton)
{
    struct automaton_list list;
    struct walker walker;

    walker_init(&walker, automaton);
    check(automaton_take(&walker, AUTOMATON_ALL, &list, NULL) == FRIT_OK);
    check(automaton_visit(&walker, &list, check_place, context, NULL) == FRIT_OK);
    automaton_put_back(&walker, &list);
    automaton_list_fini(&list);
    walker_fini(&walker);
}

/* What was read can be saved in another file and is there again. */
static void check_load(struct store_context *context)
{
    uint32_t n_plans, n_again;
    struct automaton *automaton = load(context, &n_plans);
    struct store_saved saved;

    check_places(context, automaton);
    remove(context->path);
    check(store_save(context, automaton, &saved, NULL) == FRIT_OK);
    automaton_destroy(automaton);
    automaton_destroy(load(context, &n_again));
    check(n_again >= n_plans);
}

static void check_file(struct store_context *context, const uint8_t *data, size_t size)
{
    FILE *file = fopen(context->path, "wb");

    check(file && fwrite(data, 1, size, file) == size);
    fclose(file);
    check_load(context);
}

/* Two lengths, then as many bytes of key and plan; the rest is the sync plan.  The key is that of
 * two rows, one below the other. */
static void check_row(struct store_context *context, const uint8_t *data, size_t size)
{
    static const struct database_patience patience = {.wait_ns = PATIENCE_MS * INT64_C(1000000)};
    struct plan_row node = {.lazy = size ? data[0] & 3 : 0};
    struct database *database;
    size_t lengths[2];
    uint8_t *plan, *sync;

    if (size < 5)
        return;
    lengths[0] = data[1] | (size_t)data[2] << 8;
    lengths[1] = data[3] | (size_t)data[4] << 8;
    data += 5;
    size -= 5;
    if (lengths[0] > size || lengths[1] > size - lengths[0] || !lengths[0])
        return;
    node.key = (struct database_bytes){data, lengths[0]};
    plan = seal(data + lengths[0], lengths[1], &node.plan.n_bytes);
    sync = seal(data + lengths[0] + lengths[1], size - lengths[0] - lengths[1], &node.sync.n_bytes);
    node.plan.bytes = plan;
    node.sync.bytes = sync;
    if (size == lengths[0] + lengths[1]) /* the same as the plan */
        node.sync = (struct database_bytes){"", 1};
    check(database_open(&plan_database, context->path, true, &patience, &database, NULL) ==
              FRIT_OK &&
          database);
    check(database_space(database, context->space)->number != 0);
    node.parent = 0;
    node.parent = plan_row_put(database, &node);
    check(node.parent != 0 && plan_row_put(database, &node) != 0);
    check(database_commit(database) && !database_close(database).damaged);
    free(plan);
    free(sync);
    check_load(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[64], path[80], damaged[96];
    struct store_context context = {
        .path = path, .space = "s", .fusers = &fuser, .n_fusers = 1, .wait_ms = PATIENCE_MS};

    if (!size)
        return 0;
    make_ops();
    if (data[0] == AS_PLAN) {
        check_plan(&context, data + 1, size - 1);
        return 0;
    }
    snprintf(folder, sizeof(folder), "%s/frit-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"); /* faster */
    check(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/plans", folder);
    snprintf(damaged, sizeof(damaged), "%s.damaged", path);
    if (data[0] == AS_FILE)
        check_file(&context, data + 1, size - 1);
    else if (data[0] == AS_ROW)
        check_row(&context, data + 1, size - 1);
    unlink(path);
    unlink(damaged);
    check(rmdir(folder) == 0);
    return 0;
}
