/* SPDX-License-Identifier: Apache-2.0 */
/* A launch uses what an earlier launch of the same replay fills only where a submit's end or a
 * BARRIER stands between them: where the recorded run had none, each fills memory of its own. */
#include "run/replay_derived.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/derived.h"
#include "run/bound_plan.h"

#include <string.h>

/* Whether what launch `from` writes is there for launch `to`, a later one. */
static bool is_ordered(const struct bound_plan *bound, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (bound->launches[i].submit_after || bound->launches[i + 1].barrier)
            return true;
    }
    return false;
}

/* What a launch before number `index` of this replay derives from the same contents; NULL: none
 * does in time. */
static struct buffer *find_earlier(const struct bound_plan *bound, uint32_t index,
                                   const struct bound_derived *use)
{
    for (uint32_t i = 0; i < index; i++) {
        const struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_derived; k++) {
            const struct bound_derived *other = &l->derived[k];

            if (other->kept && other->fill && other->content == use->content &&
                memcmp(&other->key, &use->key, sizeof(use->key)) == 0 &&
                is_ordered(bound, i, index))
                return other->memory;
        }
    }
    return NULL;
}

/* An operand that the plan writes over has other contents when it has run, and may have them when
 * the launch begins. */
static bool is_overwritten(const struct bound_plan *bound, const struct bound_ref *operand)
{
    return operand->place != BOUND_OPERAND || bound->values[operand->index].overwritten;
}

static frit_status take(struct bound_plan *bound, uint32_t index, struct bound_derived *use,
                        frit_device *device, frit_err *err)
{
    const struct bound_ref *operand = &bound->launches[index].args[use->arg];

    use->of = *operand->current;
    use->memory = NULL;
    use->content = is_overwritten(bound, operand) ? 0 : derived_content(use->of);
    if (use->content) {
        use->memory = derived_find(use->of, use->content, &use->key);
        if (!use->memory) {
            use->memory = find_earlier(bound, index, use);
            if (use->memory)
                buffer_own(use->memory);
        }
    }
    use->fill = !use->memory;
    return use->memory ? FRIT_OK
                       : buffer_create(device->memory, use->key.bytes, false, &use->memory, err);
}

frit_status replay_take_derived(struct bound_plan *bound, frit_device *device, frit_err *err)
{
    for (uint32_t i = 0; i < bound->n_launches && bound->n_derived; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_derived; k++) {
            frit_status st =
                l->derived[k].kept ? take(bound, i, &l->derived[k], device, err) : FRIT_OK;

            if (st) {
                replay_drop_derived(bound);
                return st;
            }
        }
    }
    return FRIT_OK;
}

void replay_publish_derived(const struct bound_plan *bound, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end && bound->n_derived; i++) {
        const struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_derived; k++) {
            const struct bound_derived *use = &l->derived[k];

            if (use->kept && use->fill && use->content)
                derived_add(use->of, use->content, &use->key, use->memory);
        }
    }
}

void replay_count_derived(const struct bound_plan *bound, frit_device *device)
{
    uint64_t fills = 0, hits = 0;

    for (uint32_t i = 0; i < bound->n_launches && bound->n_derived; i++) {
        const struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_derived; k++) {
            bool hit = l->derived[k].kept && !l->derived[k].fill;

            hits += hit;
            fills += !hit;
        }
    }
    if (!bound->n_derived)
        return;
    atomic_fetch_add(&device->count.derived_fills, fills);
    atomic_fetch_add(&device->count.derived_hits, hits);
}

void replay_drop_derived(struct bound_plan *bound)
{
    for (uint32_t i = 0; i < bound->n_launches && bound->n_derived; i++) {
        struct bound_launch *l = &bound->launches[i];

        for (uint32_t k = 0; k < l->launch.n_derived; k++) {
            buffer_disown(l->derived[k].memory);
            l->derived[k].memory = NULL;
        }
    }
}
