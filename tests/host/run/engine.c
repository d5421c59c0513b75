/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "record/binding.h"

static frit_status group_id(void *instance, frit_group_id *out, frit_err *err)
{
    (void)instance;
    (void)err;
    *out = (frit_group_id){{1}};
    return FRIT_OK;
}

static frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                                frit_err *err)
{
    (void)err;
    assert_int_equal(params->size, 1);
    *out = instance;
    return FRIT_OK;
}

static void group_destroy(frit_group *group)
{
    (void)group;
}

static void group_abort(frit_group *group, const frit_err *why)
{
    struct engine *engine = (struct engine *)(void *)group;

    engine->n_aborts++;
    snprintf(engine->why, sizeof(engine->why), "%s", why->text);
}

static frit_status once(frit_status *script, frit_err *err)
{
    frit_status st = *script;

    *script = FRIT_OK;
    return st < 0 ? fail(err, st, "the wire is cut") : st;
}

static frit_status begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                         frit_err *err)
{
    struct engine *engine = (struct engine *)(void *)group;
    const frit_collective_buffer *buffer = op->buffers;

    if (engine->on_begin)
        engine->on_begin(engine);
    if (engine->begin_status)
        return once(&engine->begin_status, err);
    assert_int_equal(buffer->dtype, FRIT_F32);
    assert_true(engine->n_begun < 64);
    engine->first_elements[engine->n_begun++] = *(const float *)buffer->from;
    engine->last_from = buffer->from;
    engine->last_into = buffer->into;
    memmove(buffer->into, buffer->from, buffer->count * sizeof(float));
    *value = ++engine->issued + engine->skip;
    return FRIT_OK;
}

static frit_status wait_value(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    struct engine *engine = (struct engine *)(void *)group;

    (void)timeout_ns;
    assert_true(value <= engine->issued + engine->skip);
    if (engine->on_wait)
        engine->on_wait(engine);
    engine->n_waits++;
    engine->abort_seen |= engine->n_aborts > 0;
    return once(&engine->wait_status, err);
}

void engine_join(struct engine *engine, frit_device *device)
{
    const frit_group_id id = {{1}};
    const struct rank_config config = {.table = &engine->table,
                                       .instance = engine,
                                       .id = &id,
                                       .size = 1,
                                       .timeout_ns = 1000000000,
                                       .name = "test"};
    struct binding *binding;
    frit_err err = ERR_INIT;

    engine->table = (frit_collective_table){.struct_size = sizeof(engine->table),
                                            .group_id = group_id,
                                            .group_create = group_create,
                                            .group_destroy = group_destroy,
                                            .group_abort = group_abort,
                                            .begin = begin,
                                            .wait = wait_value};
    assert_int_equal(binding_current(device, &binding, &err), FRIT_OK);
    if (rank_join(binding->stream, &config, &engine->rank, &err))
        fail_msg("%s", err.text);
}

void engine_leave(struct engine *engine)
{
    assert_int_equal(rank_leave(engine->rank, NULL), FRIT_OK);
}
