/* SPDX-License-Identifier: Apache-2.0 */
/* The custom ops of the process: each is a row and a record like those of ops.def, so that whoever
 * loops over rows and fields needs to know nothing of them.
 *
 * One table for all hosts, since an op is an op whatever host it is recorded on and text is read
 * without a host; which host may use which op is load/registry.h's to say.  It only grows; what was
 * looked up stays valid until the process ends.  Threads: any. */
#ifndef GRAPH_CUSTOM_H
#define GRAPH_CUSTOM_H

#include <stdbool.h>

#include <frit/custom.h>
#include <frit/op_table.h>

struct str;

struct custom_op {
    frit_op_info row; /* `level` says whether it can be decomposed */
    frit_record_info record;
    const char *plugin; /* id */
    /* From the plugin's table. */
    const void *self;
    frit_status (*infer)(const void *self, const frit_custom_call *call, frit_custom_type *out,
                         frit_err *err);
    frit_status (*decompose)(const void *self, const frit_custom_call *call,
                             const frit_custom_build *build, uint32_t *results, frit_err *err);
};

/* NULL for numbers of no custom op. */
const struct custom_op *custom_at(uint32_t op);
const frit_op_info *custom_row(uint32_t op);
const frit_record_info *custom_record(uint32_t record);
const frit_op_info *custom_find(frit_str name);
/* The contents of a frit_op_desc. */
frit_str custom_name(uint32_t op);

/* Adds an op as its plugin describes it, of which struct_size bytes are read; the plugin's own op
 * that is there already gives its number again.  FRIT_INVALID with the rule that is broken, or with
 * the plugin that has the name already. */
frit_status custom_add(const char *plugin, const frit_custom_op *op, uint32_t *id, frit_err *err);

/* For messages about unknown names: a plugin that was loaded, and an op of it that was refused.
 * If out of memory, the message does not mention them. */
void custom_note_plugin(const char *plugin);
void custom_note_refusal(const char *plugin, const char *name, const char *why);
/* "no plugin offers it; looked at: cpu, reference", and what else is known of the name. */
void custom_explain_unknown(frit_str name, struct str *out);

/* custom_check.c: whether a name can be a custom op's, by itself. */
bool custom_name_fits(frit_str name);
/* Checks the description and builds row and record, whose texts go into the arena. */
struct arena;
frit_status custom_build(struct arena *arena, const frit_custom_op *from, struct custom_op *out,
                         frit_err *err);

#endif
