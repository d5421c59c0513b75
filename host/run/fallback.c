/* SPDX-License-Identifier: Apache-2.0 */
#include "run/fallback.h"

#include <stdio.h>

#include "base/log.h"
#include "device/device.h"
#include "device/label.h"
#include "run/bound_plan.h"
#include "run/frame.h"
#include "run/run.h"

/* Texts of log messages, by kind. */
static const struct {
    enum run_mark mark;
    const char *instead;
} kinds[FALLBACKS] = {
    [FALLBACK_CANDIDATE] = {RUN_CANDIDATE, "its next candidate runs"},
    [FALLBACK_OPS] = {RUN_BY_OPS, "its ops run one by one"},
    [FALLBACK_DECOMPOSED] = {RUN_DECOMPOSED, "it runs as core ops"},
    [FALLBACK_DEVICE] = {RUN_ELSEWHERE, "it runs on another device"},
};

void fallback_note(struct frame *frame, enum fallback kind, const char *why)
{
    struct run_note *note = frame_note(frame);

    if (!note)
        return;
    note->marks |= (uint32_t)kinds[kind].mark;
    if (!*note->why)
        snprintf(note->why, sizeof(note->why), "%s", why);
}

void fallback_fault(frit_device *device, const char *label, const frit_err *why)
{
    atomic_fetch_add(&device->count.faults, 1);
    if (label_is_first(device->labels, label_of(device->labels, label), FALLBACKS))
        log_write(FRIT_LOG_WARN, "stream", "%s: %s: a fault of the driver: %s", device->name, label,
                  why->text);
}

/* Whether it runs in each later run of these sizes, too: another candidate, or the ops of a block
 * that no candidate takes. */
static bool is_lasting(enum fallback kind, frit_status why)
{
    return (kind == FALLBACK_CANDIDATE && why != FRIT_BUSY) ||
           (kind == FALLBACK_OPS && why == FRIT_UNSUPPORTED);
}

void fallback_report(struct frame *frame, const char *label, enum fallback kind,
                     const frit_err *why)
{
    frit_device *device = frame->device;

    fallback_note(frame, kind, why->text);
    if (!is_lasting(kind, why->status))
        bound_plan_spoil(frame->bound);
    if (why->status == FRIT_BUSY && kind <= FALLBACK_OPS) {
        atomic_fetch_add(&device->count.waiting, 1);
        return;
    }
    atomic_fetch_add(&device->count.fallbacks[kind], 1);
    if (why->status == FRIT_INTERNAL && kind <= FALLBACK_OPS)
        fallback_fault(device, label, why);
    if (label_is_first(device->labels, label_of(device->labels, label), kind))
        log_write(FRIT_LOG_DEBUG, "stream", "%s: %s: %s: %s", device->name, label,
                  kinds[kind].instead, why->text);
}
