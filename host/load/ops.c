/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's custom ops: each is added to the table of the process, which checks it.  A refused one
 * is logged and changes nothing for the others. */
#include "load/ops.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "graph/custom.h"
#include "load/load.h"
#include "load/table.h"

enum { MAX_OPS = 256 }; /* of one plugin */

static const frit_custom_op *op_at(const frit_ops_table *table, uint32_t index)
{
    return (const frit_custom_op *)(const void *)((const char *)table->ops +
                                                  (size_t)table->op_stride * index);
}

static bool listed_before(const struct plugin *plugin, const char *name)
{
    for (uint32_t i = 0; i < plugin->n_ops; i++) {
        if (strcmp(plugin->ops[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Fails where memory is out; else the op is there or has its reason. */
static frit_status take_op(struct arena *arena, struct plugin *plugin, const frit_custom_op *from)
{
    struct plugin_op *op = &plugin->ops[plugin->n_ops];
    frit_err err = ERR_INIT;
    frit_status st = FRIT_INVALID;

    op->why = "";
    if (FRIT_HAS(from, frit_custom_op, name))
        plugin_text(from->name, op->name, sizeof(op->name));
    if (op->name[0] && listed_before(plugin, op->name))
        fail(&err, FRIT_INVALID, "the plugin lists it twice");
    else
        st = custom_add(plugin->id, from, &op->id, &err);
    plugin->n_ops++;
    if (!st || st == FRIT_NO_HOST_MEMORY)
        return st;
    op->why = arena_text(arena, err.text, strlen(err.text));
    custom_note_refusal(plugin->id, op->name, err.text);
    log_write(FRIT_LOG_WARN, "load", "plugin %s: op '%s' is not used: %s", plugin->id, op->name,
              err.text);
    return op->why ? FRIT_OK : FRIT_NO_HOST_MEMORY;
}

frit_status ops_take(struct arena *arena, struct plugin *plugin, const void *table)
{
    frit_ops_table ops = {0};

    TRY(table_take_ops(plugin, table, &ops));
    if (ops.n_ops > MAX_OPS || ops.op_stride % sizeof(void *) || (ops.n_ops && !ops.op_stride))
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "%s lists %u ops of %u bytes each, at most %d ops may be",
                             FRIT_OPS_TABLE, ops.n_ops, ops.op_stride, MAX_OPS);
    plugin->ops = arena_array(arena, (size_t)ops.n_ops + 1, sizeof(*plugin->ops));
    if (!plugin->ops)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < ops.n_ops; i++)
        TRY(take_op(arena, plugin, op_at(&ops, i)));
    return FRIT_OK;
}
