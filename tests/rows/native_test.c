/* SPDX-License-Identifier: Apache-2.0 */
/* A device with kernels of its own needs no other one: each op of the stored cases by itself, on
 * FRIT_TEST_DEVICE, by default cpu, with [frit] fallback = none.  The test calls
 * frit_graph_support; nothing runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>
#include <frit/op_table.h>

#include "rows/cases.h"

enum { NO_DEVICE = 77, SHOWN = 40 };

static frit_host *host;
static frit_device *device;

struct seen {
    bool row[FRIT_OP_LIMIT];
    unsigned checked, wrong;
};

static const frit_op_info *find_row(const char *name)
{
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++) {
        const frit_op_info *row = frit_op_info_at(id);

        if (row && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

/* The program up to this line, with it as the only one that has an output; malloc'd. */
static char *program_of(const char *program, const char *line)
{
    size_t bytes = strlen(program) + 1;
    char *text = calloc(1, bytes), *end = text;

    assert_non_null(text);
    for (const char *at = program; at <= line; at = strchr(at, '\n') + 1) {
        const char *word = at + strspn(at, " ");
        size_t length = (size_t)(strchr(at, '\n') + 1 - at);

        if (at == line || strncmp(word, "output ", strlen("output ")) != 0) {
            memcpy(end, at, length);
            end += length;
        }
    }
    return text;
}

static uint32_t support_of(const struct row_case *one, const char *line)
{
    char *text = program_of(one->program, line);
    frit_err err = {.struct_size = sizeof(err)};
    uint32_t how = FRIT_SUPPORT_NONE;
    frit_graph *graph = NULL;
    frit_port ports[CASE_TENSORS];

    for (unsigned i = 0; i < one->n_in; i++)
        ports[i] = (frit_port){
            .struct_size = sizeof(ports[i]), .dtype = one->in[i].dtype, .dims = one->in[i].dims};
    if (frit_graph_parse(one->row, text, strlen(text), &graph, &err) ||
        frit_graph_bind(graph, ports, one->n_in, &err))
        fail_msg("%s:%u: %s: %s\n%s", one->file, one->line, one->row, err.text, text);
    how = frit_graph_support(graph, device);
    frit_graph_free(graph);
    free(text);
    return how;
}

static void check_support(struct seen *seen, const struct row_case *one, const char *line)
{
    const frit_op_info *row = find_row(one->row);
    uint32_t how = support_of(one, line);
    bool runs = how != FRIT_SUPPORT_NONE && how != FRIT_SUPPORT_FALLBACK;

    assert_non_null(row);
    seen->row[row->id] = true;
    seen->checked++;
    if (!runs && seen->wrong++ < SHOWN)
        print_error("%s:%u: %s %s is left to another device: %.*s\n", one->file, one->line,
                    one->row, one->dtype, (int)strcspn(line, "\n"), line);
}

static void check_case(const struct row_case *one, void *ctx)
{
    for (const char *at = one->program; *at; at = strchr(at, '\n') + 1) {
        const char *word = at + strspn(at, " ");

        if (strncmp(word, "output ", strlen("output ")) == 0)
            check_support(ctx, one, at);
    }
}

static void every_row_is_native(void **state)
{
    struct seen seen = {{false}, 0, 0};
    unsigned rows = 0;

    (void)state;
    cases_each(check_case, &seen);
    for (uint32_t id = 1; id < FRIT_OP_LIMIT; id++)
        rows += seen.row[id];
    print_message("%u ops of %u rows\n", seen.checked, rows);
    assert_true(rows > 150 && seen.checked > rows);
    assert_int_equal(seen.wrong, 0);
}

int main(void)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const frit_setting alone = {"frit", "fallback", "none"};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = &alone, .n_settings = 1};
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_native)};
    const char *name = getenv("FRIT_TEST_DEVICE");
    int failed;

    if (frit_host_open(&params, &host, &err) != FRIT_OK)
        return EXIT_FAILURE;
    if (frit_device_open(host, name ? name : "cpu", &device, &err) != FRIT_OK) {
        bool missing = strstr(err.text, "no-device") || strstr(err.text, "no-runtime");

        fprintf(stderr, "%s\n", err.text);
        frit_host_close(host);
        return missing ? NO_DEVICE : EXIT_FAILURE;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    frit_device_close(device);
    frit_host_close(host);
    return failed;
}
