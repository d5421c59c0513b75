/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes in the place of saved plans.  The first byte says as what they are read: 0 a whole
 * file, 1 a plan, whose digest is put right, 2 the key, the plan and the sync plan of one row,
 * likewise. Nothing is read or freed that must not be, a plan that is accepted can be saved and
 * read again, and after any file a save comes back. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/str.h"
#include "plan/blob.h"
#include "plan/database.h"
#include "plan/key.h"
#include "plan/plan.h"
#include "plan/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AS_FILE, AS_PLAN, AS_ROW };

#define check(condition) ((condition) ? (void)0 : abort())

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
    check(n_ops > 0 && ops && op_stride >= sizeof(*ops));
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

static void check_plan(const struct store_context *context, const uint8_t *data, size_t size)
{
    size_t n_bytes = size + sizeof(uint64_t);
    uint8_t *bytes = malloc(n_bytes); /* of the exact size, so that a sanitizer sees its end */
    uint64_t digest = XXH3_64bits(data, size);
    struct str first = {0}, second = {0};
    struct plan *plan = NULL, *again = NULL;

    check(bytes != NULL);
    if (size)
        memcpy(bytes, data, size);
    memcpy(bytes + size, &digest, sizeof(digest));
    if (blob_read(bytes, n_bytes, context, &plan, NULL) == FRIT_OK) {
        check(plan_verify(plan, NULL) == FRIT_OK);
        check(blob_write(plan, context, &first, NULL) == FRIT_OK);
        check(blob_read(first.text, first.length, context, &again, NULL) == FRIT_OK);
        check(blob_write(again, context, &second, NULL) == FRIT_OK);
        check(first.length == second.length && memcmp(first.text, second.text, first.length) == 0);
        second.length = 0;
        plan_print(plan, &second);
        check(!second.failed);
    } else {
        check(plan == NULL);
    }
    str_fini(&first);
    str_fini(&second);
    plan_unref(again);
    plan_unref(plan);
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

/* What was read can be saved in another file and is there again. */
static void check_load(const struct store_context *context)
{
    uint32_t n_plans, n_again;
    struct automaton *automaton = load(context, &n_plans);
    struct store_saved saved;

    remove(context->path);
    check(store_save(context, automaton, &saved, NULL) == FRIT_OK);
    automaton_destroy(automaton);
    automaton_destroy(load(context, &n_again));
    check(n_again >= n_plans);
}

static void check_file(const struct store_context *context, const uint8_t *data, size_t size)
{
    FILE *file = fopen(context->path, "wb");

    check(file && fwrite(data, 1, size, file) == size);
    fclose(file);
    check_load(context);
}

/* Two lengths, then as many bytes of key and plan; the rest is the sync plan. */
static void check_row(const struct store_context *context, const uint8_t *data, size_t size)
{
    struct database_node node = {.lazy = size ? data[0] & 3 : 0};
    struct database *database;
    size_t lengths[2];

    if (size < 5)
        return;
    lengths[0] = data[1] | (size_t)data[2] << 8;
    lengths[1] = data[3] | (size_t)data[4] << 8;
    data += 5;
    size -= 5;
    if (lengths[0] > size || lengths[1] > size - lengths[0] || !lengths[0])
        return;
    node.key = (struct database_bytes){data, lengths[0]};
    node.plan = (struct database_bytes){data + lengths[0], lengths[1]};
    node.sync =
        (struct database_bytes){data + lengths[0] + lengths[1], size - lengths[0] - lengths[1]};
    check(database_open(context->path, true, &database, NULL) == FRIT_OK && database);
    check(database_space(database, context->space)->number != 0);
    node.parent = 0;
    node.parent = database_put(database, &node);
    check(node.parent != 0 && database_put(database, &node) != 0);
    check(database_commit(database) && !database_close(database));
    check_load(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[] = "/tmp/frit-fuzz-XXXXXX", path[64], damaged[80];
    struct store_context context = {.path = path, .space = "s", .fusers = &fuser, .n_fusers = 1};

    if (!size)
        return 0;
    if (data[0] == AS_PLAN) {
        check_plan(&context, data + 1, size - 1);
        return 0;
    }
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
