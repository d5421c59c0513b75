/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as op records over the whole table: each is refused with a sentence that names its row,
 * or passes again unchanged; what was taken verifies, prints and parses back to the same text, and,
 * where it is small, runs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/text/text.h"
#include "graph/verify.h"
#include "op_bytes.h"
#include "op_run.h"

enum { MAX_OPS = 12, MAX_ELEMENTS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_message(const frit_op_info *row, const frit_err *err)
{
    check(err->status == FRIT_INVALID && strstr(err->text, row->name) != NULL);
    for (const char *c = err->text; *c; c++)
        check(*c >= ' ' && *c < 127);
}

/* A call as op_check takes it. */
struct checked {
    struct op_input in[FRIT_OP_MAX_IN];
    struct op_type out[FRIT_OP_MAX_OUT];
    union attrs attrs;
    struct op_call call;
};

static frit_status check_record(const struct graph *graph, const struct op_record *record,
                                struct checked *checked, frit_err *err)
{
    *checked = (struct checked){.attrs = record->attrs};
    checked->call = (struct op_call){.op = record->call.op,
                                     .n_in = record->call.n_in,
                                     .wanted = record->call.wanted,
                                     .in = checked->in,
                                     .attrs = record->call.attrs ? &checked->attrs : NULL};
    graph_operands(graph, record->in, record->call.n_in, checked->in);
    return op_check(&checked->call, checked->out, err);
}

/* A checked call passes again and does not change. */
static void check_again(struct checked *checked)
{
    const frit_op_info *row = op_row(checked->call.op);
    union attrs attrs = checked->attrs;
    struct op_type out[FRIT_OP_MAX_OUT];

    check(op_check(&checked->call, out, NULL) == FRIT_OK);
    check(memcmp(&attrs, &checked->attrs, frit_record_info_at(row->record)->size) == 0);
    for (uint32_t k = 0; k < op_n_out(row); k++)
        check(out[k].dtype == checked->out[k].dtype &&
              (out[k].dtype == FRIT_NO_DTYPE || op_type_equal(&out[k], &checked->out[k])));
}

static bool is_small(const struct checked *checked)
{
    for (uint32_t k = 0; k < op_n_out(op_row(checked->call.op)); k++)
        if (checked->out[k].dtype != FRIT_NO_DTYPE && op_elements(&checked->out[k]) > MAX_ELEMENTS)
            return false;
    return true;
}

static void append(struct bytes *bytes, enum op_sizes sizes, struct graph *graph)
{
    uint32_t out[FRIT_OP_MAX_OUT], n_values = graph->n_values;
    struct op_record record;
    struct checked checked;
    frit_err err = ERR_INIT;

    op_bytes_record(bytes, sizes, graph, &record);
    if (check_record(graph, &record, &checked, &err)) {
        check_message(record.row, &err);
        check(graph_append(graph, &record.call, out, NULL) == FRIT_INVALID);
        check(graph->n_values == n_values);
        return;
    }
    check_again(&checked);
    if (sizes == OP_SMALL && (!is_small(&checked) || record.row->traits & FRIT_OP_ORDERED))
        return;
    check(graph_append(graph, &record.call, out, NULL) == FRIT_OK);
    for (uint32_t k = 0; k < op_n_out(record.row); k++)
        if (out[k] != GRAPH_NO_VALUE)
            check(graph_output(graph, out[k], NULL) == FRIT_OK);
}

/* The printed graph of a text. */
static void print_again(const char *text, size_t length, struct str *out)
{
    struct script *script;
    struct graph graph = {0};
    struct op_type *types;

    check(script_parse("fuzz", text, length, &script, NULL) == FRIT_OK);
    types = calloc((size_t)script_n_inputs(script) + 1, sizeof(*types));
    check(types != NULL);
    check(script_bind(script, types, &graph, NULL) == FRIT_OK);
    graph_print(&graph, out);
    graph_fini(&graph);
    free(types);
    script_destroy(script);
}

static void check_round_trip(const struct graph *graph)
{
    struct str first = {0}, second = {0};

    graph_print(graph, &first);
    check(!first.failed && first.length);
    print_again(first.text, first.length, &second);
    check(first.length == second.length && memcmp(first.text, second.text, first.length) == 0);
    str_fini(&first);
    str_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    uint32_t head = bytes_take(&bytes);
    enum op_sizes sizes = head % 4 == 3 ? OP_ANY : OP_SMALL;
    struct graph graph = {0};

    for (uint32_t k = 0; k <= head / 4 % 4; k++)
        op_bytes_input(&bytes, sizes, &graph);
    for (uint32_t k = 0; k < MAX_OPS && bytes.left; k++) {
        if (bytes_take(&bytes) % 8 == 7)
            op_bytes_input(&bytes, sizes, &graph);
        append(&bytes, sizes, &graph);
    }
    check(graph_verify(&graph, NULL) == FRIT_OK);
    check_round_trip(&graph);
    if (sizes == OP_SMALL)
        op_run(&graph, head + size);
    graph_fini(&graph);
    return 0;
}
