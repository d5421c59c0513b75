/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "lower/sched.h"

/* ---- life ---- */

bool matcher_init(struct matcher *matcher, const struct schedule *schedule,
                  const struct kir_target *target)
{
    *matcher = (struct matcher){.schedule = schedule, .target = target};
    matcher->state = calloc(1, schedule->state_bytes + 1u);
    return matcher->state != NULL;
}

void matcher_fini(struct matcher *matcher)
{
    free(matcher->extent_uses);
    free(matcher->outputs);
    free(matcher->output_slot);
    free(matcher->values);
    free(matcher->state);
    *matcher = (struct matcher){0};
}

void matcher_reset(struct matcher *matcher)
{
    const struct schedule *schedule = matcher->schedule;

    memset(matcher->state, 0, schedule->state_bytes);
    if (matcher->values_capacity)
        memset(matcher->values, 0, (size_t)matcher->values_capacity * schedule->value_bytes);
    if (matcher->extent_capacity)
        memset(matcher->extent_uses, 0, matcher->extent_capacity * sizeof(*matcher->extent_uses));
    if (matcher->output_slot_capacity)
        memset(matcher->output_slot, 0,
               matcher->output_slot_capacity * sizeof(*matcher->output_slot));
    matcher->n_ops = matcher->n_values = matcher->n_inputs = 0;
    matcher->n_hidden_extents = matcher->n_reshapes = matcher->n_outputs = 0;
    matcher->closed = matcher->no_memory = matcher->fits = false;
}

/* Grows the arrays to all values and extents of the block and fills new elements with zeros. */
static bool grow(struct matcher *m, const struct block *block)
{
    size_t size = m->schedule->value_bytes;
    uint32_t values = m->values_capacity, extents = m->extent_capacity,
             slots = m->output_slot_capacity;

    if (!array_grow(&m->values, &m->values_capacity, 0, size ? block->n_values : 0,
                    size ? size : 1) ||
        !array_grow(&m->extent_uses, &m->extent_capacity, 0, block->n_extents + 2,
                    sizeof(*m->extent_uses)) ||
        !array_grow(&m->output_slot, &m->output_slot_capacity, 0, block->n_values,
                    sizeof(*m->output_slot)) ||
        !array_grow(&m->outputs, &m->outputs_capacity, m->n_outputs, FRIT_OP_MAX_OUT,
                    sizeof(*m->outputs)))
        return false;
    memset(m->output_slot + slots, 0, (m->output_slot_capacity - slots) * sizeof(*m->output_slot));
    if (m->values_capacity > values)
        memset((char *)m->values + values * size, 0, (m->values_capacity - values) * size);
    memset(m->extent_uses + extents, 0, (m->extent_capacity - extents) * sizeof(*m->extent_uses));
    return true;
}

/* ---- values ---- */

/* Counts an input or output that has these extents.  Those below 2 are constants and not counted.
 */
static void count_extents(struct matcher *m, const struct block_value *value)
{
    for (uint32_t d = 0; d < value->rank; d++) {
        uint32_t *uses = &m->extent_uses[value->extent[d]];

        if (value->extent[d] < 2)
            continue;
        m->n_hidden_extents -= *uses == 1;
        *uses = *uses ? *uses + 1 : 2;
    }
}

static void uncount_extents(struct matcher *m, const struct block_value *value)
{
    for (uint32_t d = 0; d < value->rank; d++)
        if (value->extent[d] >= 2)
            m->n_hidden_extents += --m->extent_uses[value->extent[d]] == 1;
}

static void add_value(struct matcher *m, const struct block *block, uint32_t value)
{
    if (value < m->n_values)
        return;
    m->n_values = value + 1;
    count_extents(m, &block->values[value]);
    if (block->values[value].maker == BLOCK_NONE) {
        m->n_inputs++;
        return;
    }
    m->outputs[m->n_outputs++] = value;
    m->output_slot[value] = m->n_outputs;
}

static void remove_output(struct matcher *m, const struct block *block, uint32_t value)
{
    uint32_t output_slot = m->output_slot[value], last;

    if (!output_slot)
        return;
    last = m->outputs[--m->n_outputs];
    m->outputs[output_slot - 1] = last;
    m->output_slot[last] = output_slot;
    m->output_slot[value] = 0;
    uncount_extents(m, &block->values[value]);
}

/* ---- hidden extents ---- */

/* Hidden extents that reshapes determine. */
struct solved {
    const struct matcher *m;
    uint32_t n, extent[MATCH_RESHAPES];
};

static bool is_known(const void *ctx, uint32_t extent)
{
    const struct solved *solved = ctx;

    if (extent < 2 || solved->m->extent_uses[extent] != 1)
        return true;
    for (uint32_t i = 0; i < solved->n; i++)
        if (solved->extent[i] == extent)
            return true;
    return false;
}

/* Whether the sizes of all extents follow from those of inputs and outputs. */
static bool extents_follow(const struct matcher *m, const struct block *block)
{
    struct solved solved = {.m = m};

    if (m->n_hidden_extents > m->n_reshapes)
        return false;
    for (uint32_t before = 0; solved.n < m->n_hidden_extents; before = solved.n) {
        for (uint32_t i = 0; i < m->n_reshapes; i++) {
            uint32_t extent =
                block_solved_by(block, &block->ops[m->reshapes[i]], is_known, &solved);

            if (extent != BLOCK_NONE)
                solved.extent[solved.n++] = extent;
        }
        if (solved.n == before)
            return false;
    }
    return true;
}

/* ---- ops ---- */

static bool match_op(struct matcher *m, const struct block *block)
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
        remove_output(m, block, op->dead[i]);
    if (op->id == FRIT_OP_reshape && m->n_reshapes < MATCH_RESHAPES)
        m->reshapes[m->n_reshapes++] = m->n_ops;
    return m->n_outputs <= MATCH_MAX_LIVE || m->schedule->of_components;
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
    if (!match_op(m, block)) {
        m->closed = true;
        return;
    }
    m->n_ops++;
    m->fits = outputs_fit(m) && extents_follow(m, block) && m->schedule->fits(m, block);
}

frit_status match_block(const struct schedule *schedule, const struct kir_target *target,
                        const struct block *block, uint32_t *covered, bool *open, frit_err *err)
{
    struct matcher m;
    bool no_memory = !matcher_init(&m, schedule, target);

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
