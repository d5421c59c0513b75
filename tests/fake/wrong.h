/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a wrong driver share: what is wrong with it, and elements of f32. */
#ifndef FAKE_WRONG_H
#define FAKE_WRONG_H

#include <stdbool.h>

#include <frit/fuser.h>

#include "driver.h"

enum {
    WRONG_NOTHING,
#define FAKE_WRONG(NAME, file, one, words) WRONG_##NAME,
#include "wrongs.def"
};

/* One of them, of the shared object (wrong_plugin.c). */
extern const int wrong_row;

/* Elements of a tensor. */
int64_t wrong_count(const frit_arg *arg);
/* Where element `i` of the result lies in an operand, or in the result itself; dims are aligned at
 * the right. */
float *wrong_element(const frit_arg *arg, const frit_arg *out, int64_t i);
/* Of neg, add, maximum or copy. */
float wrong_result(uint32_t op, float a, float b);
/* Whether it is one of them, of f32. */
bool wrong_takes(const frit_op_desc *op);
float wrong_scalar(const frit_launch *launch, uint32_t index);

/* What specs point to: one lane, and an output in the place of the first input. */
const frit_phase *wrong_phase(void);
extern const frit_output_spec wrong_aliased;

/* ---- fusers of neg, add and maximum ---- */

extern const frit_fuser_table wrong_fusers;
/* Whether a fuser made the program; then fused_run runs it. */
bool fused_owns(const frit_program *program);
void fused_run(const frit_launch *launch);

/* ---- the plugin's table ---- */

frit_status wrong_plugin_open(const frit_host_root *host, void **instance, frit_err *err);
const void *wrong_interface(void *instance, frit_str id);

#endif
