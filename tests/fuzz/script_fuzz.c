/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text program: either an error message with line and column, or a graph that
 * verifies, and whose printed text parses and prints as the same text again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/text/text.h"
#include "graph/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* Messages look like "fuzz:1:1: ...". */
static void check_message(const frit_err *err)
{
    check(err->status == FRIT_INVALID);
    check(strncmp(err->text, "fuzz:", 5) == 0 && err->text[5] >= '1' && err->text[5] <= '9');
}

/* False: the text is refused, with a proper message. */
static bool parse_and_bind(const char *text, size_t size, struct graph *graph)
{
    struct script *script;
    struct op_type *types;
    frit_err err = ERR_INIT;
    frit_status st = script_parse("fuzz", text, size, &script, &err);

    if (st) {
        check_message(&err);
        return false;
    }
    types = calloc((size_t)script_n_inputs(script) + 1, sizeof(*types));
    check(types != NULL);
    st = script_bind(script, types, graph, &err);
    if (st)
        check_message(&err);
    else
        check(graph_verify(graph, &err) == FRIT_OK);
    free(types);
    script_destroy(script);
    return !st;
}

static void check_round_trip(const struct graph *graph)
{
    struct str first = {0}, second = {0};
    struct graph again = {0};

    graph_print(graph, &first);
    check(!first.failed);
    check(parse_and_bind(first.text ? first.text : "", first.length, &again));
    graph_print(&again, &second);
    check(first.length == second.length);
    check(first.length == 0 || memcmp(first.text, second.text, first.length) == 0);
    graph_fini(&again);
    str_fini(&first);
    str_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* of the exact size, so that a sanitizer sees its end */
    struct graph graph = {0};

    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    if (parse_and_bind(text, size, &graph))
        check_round_trip(&graph);
    graph_fini(&graph);
    free(text);
    return 0;
}
