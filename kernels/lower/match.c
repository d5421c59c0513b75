/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "lower/sched.h"

/* ---- life ---- */

bool matcher_init(struct matcher *matcher, const struct schedule *schedule)
{
    *matcher = (struct matcher){.schedule = schedule};
    matcher->state = calloc(1, schedule->state_bytes + 1u);
    return matcher->state != NULL;
}

void matcher_fini(struct matcher *matcher)
{
    free(matcher->seen);
    free(matcher->outputs);
    free(matcher->place);
    free(matcher->values);
    free(matcher->state);
    *matcher = (struct matcher){0};
}

void matcher_reset(struct matcher *matcher)
{
    const struct schedule *schedule = matcher->schedule;

    memset(matcher->state, 0, schedule->state_bytes);
    if (matcher->n_states)
        memset(matcher->values, 0, (size_t)matcher->n_states * schedule->value_bytes);
    if (matcher->capacity)
        memset(matcher->seen, 0, matcher->capacity * sizeof(*matcher->seen));
    if (matcher->place_capacity)
        memset(matcher->place, 0, matcher->place_capacity * sizeof(*matcher->place));
    matcher->n_ops = matcher->n_values = matcher->n_inputs = 0;
    matcher->n_hidden = matcher->n_outputs = 0;
    matcher->closed = matcher->no_memory = matcher->fits = false;
}

/* Room for all values and extents of the block, filled with zeros. */
static bool grow(struct matcher *m, const struct block *block)
{
    size_t size = m->schedule->value_bytes;
    uint32_t values = m->n_states, extents = m->capacity, places = m->place_capacity;

    if (!array_grow(&m->values, &m->n_states, 0, size ? block->n_values : 0, size ? size : 1) ||
        !array_grow(&m->seen, &m->capacity, 0, block->n_extents + 2, sizeof(*m->seen)) ||
        !array_grow(&m->place, &m->place_capacity, 0, block->n_values, sizeof(*m->place)) ||
        !array_grow(&m->outputs, &m->outputs_capacity, m->n_outputs, FRIT_OP_MAX_OUT,
                    sizeof(*m->outputs)))
        return false;
    memset(m->place + places, 0, (m->place_capacity - places) * sizeof(*m->place));
    if (m->n_states > values)
        memset((char *)m->values + values * size, 0, (m->n_states - values) * size);
    memset(m->seen + extents, 0, (m->capacity - extents) * sizeof(*m->seen));
    return true;
}

/* ---- values ---- */

/* An input or output more that has these extents; everybody knows those below 2. */
static void show_extents(struct matcher *m, const struct block_value *value)
{
    for (uint32_t d = 0; d < value->rank; d++) {
        uint32_t *seen = &m->seen[value->extent[d]];

        if (value->extent[d] < 2)
            continue;
        m->n_hidden -= *seen == 1;
        *seen = *seen ? *seen + 1 : 2;
    }
}

static void hide_extents(struct matcher *m, const struct block_value *value)
{
    for (uint32_t d = 0; d < value->rank; d++)
        if (value->extent[d] >= 2)
            m->n_hidden += --m->seen[value->extent[d]] == 1;
}

static void add_value(struct matcher *m, const struct block *block, uint32_t value)
{
    if (value < m->n_values)
        return;
    m->n_values = value + 1;
    show_extents(m, &block->values[value]);
    if (block->values[value].maker == BLOCK_NONE) {
        m->n_inputs++;
        return;
    }
    m->outputs[m->n_outputs++] = value;
    m->place[value] = m->n_outputs;
}

static void bury_value(struct matcher *m, const struct block *block, uint32_t value)
{
    uint32_t place = m->place[value], last;

    if (!place)
        return;
    last = m->outputs[--m->n_outputs];
    m->outputs[place - 1] = last;
    m->place[last] = place;
    m->place[value] = 0;
    hide_extents(m, &block->values[value]);
}

/* ---- ops ---- */

static bool take_op(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];

    m->no_memory = !grow(m, block);
    if (m->no_memory || op->n_out > FRIT_OP_MAX_OUT || !m->schedule->match(m, block))
        return false;
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            add_value(m, block, op->in[i].value);
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i] != BLOCK_NONE)
            add_value(m, block, op->out[i]);
    for (uint32_t i = 0; i < op->n_dead; i++)
        bury_value(m, block, op->dead[i]);
    return m->n_outputs <= MATCH_ALIVE || m->schedule->of_components;
}

static bool outputs_fit(const struct matcher *m)
{
    return m->n_outputs > 0 &&
           (m->n_outputs <= SCHED_OUTPUTS || m->schedule->of_components != NULL);
}

void matcher_push(struct matcher *matcher, const struct block *block)
{
    struct matcher *m = matcher;

    if (m->closed)
        return;
    m->fits = false;
    if (!take_op(m, block)) {
        m->closed = true;
        return;
    }
    m->n_ops++;
    m->fits = outputs_fit(m) && !m->n_hidden && m->schedule->fits(m, block);
}

frit_status match_block(const struct schedule *schedule, const struct block *block,
                        uint32_t *covered, bool *open, frit_err *err)
{
    struct matcher m;
    bool no_memory = !matcher_init(&m, schedule);

    *covered = 0;
    *open = false;
    while (!no_memory && m.n_ops < block->n_ops && !m.closed) {
        matcher_push(&m, block);
        if (m.fits)
            *covered = m.n_ops;
    }
    no_memory = no_memory || m.no_memory;
    *open = !no_memory && !m.closed;
    matcher_fini(&m);
    return no_memory ? fail_memory(err, block->n_values) : FRIT_OK;
}
