/* SPDX-License-Identifier: Apache-2.0 */
/* A section of ops that the library records for itself: temporaries end with it, and gradients do
 * not follow it unless they are to.  Results that stay get a reference (cell_own) or are kept. */
#ifndef TRAIN_SECTION_H
#define TRAIN_SECTION_H

#include "grad/history.h"
#include "record/binding.h"

struct section {
    struct binding *binding;
    uint64_t depth;
    bool is_followed;
};

static inline frit_status section_begin_followed(struct section *section, frit_device *device,
                                                 frit_err *err)
{
    frit_status st = binding_current(device, &section->binding, err);

    section->is_followed = true;
    section->depth = st ? 0 : scope_begin(section->binding);
    return st;
}

static inline frit_status section_begin(struct section *section, frit_device *device, frit_err *err)
{
    frit_status st = section_begin_followed(section, device, err);

    section->is_followed = st;
    if (!st)
        history_pause();
    return st;
}

static inline void section_end(struct section *section)
{
    if (!section->is_followed)
        history_resume();
    scopes_close(section->binding, section->depth);
}

#endif
