/* SPDX-License-Identifier: Apache-2.0 */
#include "host/graph/graph_rig.h"

#include <stdlib.h>
#include <string.h>

frit_status rig_graph(const char *text, struct graph *graph, frit_err *err)
{
    struct script *script;
    struct op_type *types;
    frit_status st;

    *graph = (struct graph){0};
    st = script_parse("t.frit", text, strlen(text), &script, err);
    if (st)
        return st;
    types = calloc((size_t)script_n_inputs(script) + 1, sizeof(*types));
    st = types ? script_bind(script, types, graph, err) : FRIT_NO_HOST_MEMORY;
    if (st)
        graph_fini(graph);
    free(types);
    script_destroy(script);
    return st;
}

static void assert_equal_op(const struct graph_op *a, const struct graph_op *b)
{
    const frit_record_info *record = frit_record_info_at(op_row(a->op)->record);

    assert_int_equal(a->op, b->op);
    assert_int_equal(a->n_in, b->n_in);
    assert_int_equal(a->n_out, b->n_out);
    assert_memory_equal(a->in, b->in, a->n_in * sizeof(*a->in));
    assert_memory_equal(a->out, b->out, sizeof(a->out));
    assert_int_equal(!a->attrs, !b->attrs);
    if (a->attrs)
        assert_memory_equal(a->attrs, b->attrs, record->size);
}

void rig_assert_equal(const struct graph *a, const struct graph *b)
{
    assert_int_equal(a->n_values, b->n_values);
    assert_int_equal(a->n_ops, b->n_ops);
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (uint32_t i = 0; i < a->n_values; i++) {
        assert_int_equal(a->values[i].kind, b->values[i].kind);
        assert_true(op_type_equal(&a->values[i].type, &b->values[i].type));
        assert_int_equal(!a->values[i].file, !b->values[i].file);
        if (a->values[i].file)
            assert_string_equal(a->values[i].file, b->values[i].file);
        assert_int_equal(!a->values[i].data, !b->values[i].data);
        if (a->values[i].data)
            assert_memory_equal(
                a->values[i].data, b->values[i].data,
                frit_storage_bytes(a->values[i].type.dtype, op_elements(&a->values[i].type)));
    }
    for (uint32_t i = 0; i < a->n_ops; i++)
        assert_equal_op(&a->ops[i], &b->ops[i]);
    for (uint32_t i = 0; i < a->n_outputs; i++) {
        assert_int_equal(a->outputs[i], b->outputs[i]);
        assert_int_equal(!a->output_names[i], !b->output_names[i]);
    }
}

void rig_assert_round_trip(const struct graph *graph)
{
    struct str first = {0}, second = {0};
    struct graph again;
    frit_err err = ERR_INIT;

    graph_print(graph, &first);
    if (rig_graph(first.text ? first.text : "", &again, &err))
        fail_msg("%s\n%s", first.text, err.text);
    rig_assert_equal(graph, &again);
    graph_print(&again, &second);
    if (first.text)
        assert_string_equal(first.text, second.text);
    graph_fini(&again);
    str_fini(&first);
    str_fini(&second);
}
