/* SPDX-License-Identifier: Apache-2.0 */
#include "record/segments.h"

#include <stdlib.h>

static struct segment *add(struct segments *segments)
{
    struct segment *segment = segments->count < SEGMENTS_MAX ? calloc(1, sizeof(*segment)) : NULL;

    if (segment)
        segments->all[segments->count++] = segment;
    return segment;
}

struct segment *segments_init(struct segments *segments)
{
    *segments = (struct segments){0};
    if (add(segments) && add(segments))
        return segments->all[0];
    segments_fini(segments);
    return NULL;
}

void segments_fini(struct segments *segments)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        segment_fini(segments->all[i]);
        free(segments->all[i]);
    }
    *segments = (struct segments){0};
}

static bool is_blank(const struct segment *segment)
{
    return segment->n_predicted == 0;
}

/* There is always one: at most one runs and one is recorded into, and then a third is made. */
static struct segment *least_recent(const struct segments *segments, const struct segment *current)
{
    struct segment *found = NULL;

    for (uint32_t i = 0; i < segments->count; i++) {
        struct segment *segment = segments->all[i];

        if (segment == current || segment->running)
            continue;
        if (is_blank(segment))
            return segment;
        if (!found || segment->last_run < found->last_run)
            found = segment;
    }
    return found;
}

struct segment *segments_blank(struct segments *segments, struct segment *current)
{
    struct segment *found = least_recent(segments, current), *made;

    if (found && is_blank(found))
        return found;
    made = add(segments);
    if (made || !found)
        return made ? made : current;
    segment_reset(found, 0);
    return found;
}

struct segment *segments_next(struct segments *segments, struct segment *current, bool blank)
{
    struct segment *next = current->successor;

    if (segments->last)
        segments->last->successor = current;
    segments->last = current;
    current->last_run = ++segments->n_runs;
    current->running = true;
    if (blank || !next || next->running)
        next = segments_blank(segments, current);
    return next;
}

struct segment *segments_after(const struct segment *ran, struct segment *current)
{
    return !ran->successor || ran->successor->running ? current : ran->successor;
}

struct segment *segments_other(const struct segments *segments, const struct segment *current,
                               const struct segment *seen)
{
    bool on = !seen;

    for (uint32_t i = 0; i < segments->count; i++) {
        struct segment *segment = segments->all[i];

        if (on && segment != current && !segment->running && !is_blank(segment))
            return segment;
        on |= segment == seen;
    }
    return NULL;
}
