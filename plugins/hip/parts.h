/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a kernel's form, compiled at once: phases that take long have one each, so that
 * nobody waits for one after the other.  Threads: any. */
#ifndef HIP_PARTS_H
#define HIP_PARTS_H

#include <stdint.h>

#include <frit/status.h>

#include "emit/c/ctext.h"
#include "ir/kir.h"

struct device;

enum { MOST_PARTS = 4 };

/* Phases in a row, and their code object. */
struct part {
    uint32_t first, n;
    void *object; /* owned by whom parts_compile gave it; see hip_free */
    uint64_t bytes;
};

struct parts {
    struct part list[MOST_PARTS];
    uint32_t n;
};

/* Which phases have a text together. */
void parts_divide(const struct kir_module *module, struct parts *out);
/* Compiles the module's form (bits FORM_*) and sets phases[0 .. n_phases).  On failure no object is
 * left.  The device need not be entered. */
frit_status parts_compile(struct device *device, const struct kir_module *module, uint32_t form,
                          struct parts *out, struct ctext_phase *phases,
                          struct ctext_kernels *kernels, frit_err *err);
void parts_fini(struct device *device, struct parts *parts);

#endif
