/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/work.h"

#include <stdlib.h>

static struct work *add(struct works *works)
{
    struct work *work = works->count < WORKS ? calloc(1, sizeof(*work)) : NULL;

    if (work)
        works->all[works->count++] = work;
    return work;
}

struct work *works_init(struct works *works)
{
    *works = (struct works){0};
    if (add(works) && add(works))
        return works->all[0];
    works_fini(works);
    return NULL;
}

void works_fini(struct works *works)
{
    for (uint32_t i = 0; i < works->count; i++) {
        segment_fini(&works->all[i]->segment);
        explorer_fini(&works->all[i]->explorer);
        free(works->all[i]);
    }
    *works = (struct works){0};
}

static bool is_blank(const struct work *work)
{
    return work->segment.n_known == 0;
}

/* There is always one: at most one runs and one is recorded into, and then a third is made. */
static struct work *oldest(const struct works *works, const struct work *current)
{
    struct work *found = NULL;

    for (uint32_t i = 0; i < works->count; i++) {
        struct work *work = works->all[i];

        if (work == current || work->away)
            continue;
        if (is_blank(work))
            return work;
        if (!found || work->turn < found->turn)
            found = work;
    }
    return found;
}

struct work *works_fresh(struct works *works, struct work *current)
{
    struct work *found = oldest(works, current), *made;

    if (found && is_blank(found))
        return found;
    made = add(works);
    if (made || !found)
        return made ? made : current;
    segment_reset(&found->segment, 0);
    return found;
}

struct work *works_next(struct works *works, struct work *work, bool fresh)
{
    struct work *next = work->then;

    if (works->last)
        works->last->then = work;
    works->last = work;
    work->turn = ++works->turn;
    work->away = true;
    if (fresh || !next || next->away)
        next = works_fresh(works, work);
    return next;
}

struct work *works_after(const struct work *work, struct work *current)
{
    return !work->then || work->then->away ? current : work->then;
}

struct work *works_other(const struct works *works, const struct work *current,
                         const struct work *seen)
{
    bool on = !seen;

    for (uint32_t i = 0; i < works->count; i++) {
        struct work *work = works->all[i];

        if (on && work != current && !work->away && !is_blank(work))
            return work;
        on |= work == seen;
    }
    return NULL;
}

void work_turn(struct work *from, struct work *to)
{
    if (from == to)
        return;
    to->segment.epoch = from->segment.epoch;
    from->segment.epoch = 0;
}
