/* SPDX-License-Identifier: Apache-2.0 */
/* Text in, text out: golden [--bless] FOLDER.
 *
 * Each NAME.frit is parsed and bound with no type known; the printed graph, or the message, must be
 * what NAME.out holds.  --bless writes the .out files instead; read the difference before you
 * commit it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/text/text.h"
#include "graph/verify.h"

static bool read_file(const char *path, struct str *out)
{
    char piece[4096];
    FILE *file = fopen(path, "rb");
    size_t n;

    if (!file)
        return false;
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
        str_add(out, piece, n);
    fclose(file);
    return !out->failed;
}

static bool write_file(const char *path, const struct str *text)
{
    FILE *file = fopen(path, "wb");
    bool good =
        file && (!text->length || fwrite(text->text, 1, text->length, file) == text->length);

    return file && fclose(file) == 0 && good;
}

/* What the program gives: its graph, or why there is none. */
static void process(const char *name, const struct str *text, struct str *out)
{
    struct script *script = NULL;
    struct op_type *types;
    struct graph graph = {0};
    frit_err err = ERR_INIT;
    frit_status st = script_parse(name, text->text ? text->text : "", text->length, &script, &err);

    if (!st) {
        types = calloc((size_t)script_n_inputs(script) + 1, sizeof(*types));
        st = types ? script_bind(script, types, &graph, &err) : fail_memory(&err, 1);
        free(types);
    }
    if (!st)
        st = graph_verify(&graph, &err);
    if (st)
        str_addf(out, "%s\n", err.text);
    else
        graph_print(&graph, out);
    graph_fini(&graph);
    script_destroy(script);
}

static bool same(const struct str *a, const struct str *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static bool run_case(const char *folder, const char *name, bool bless)
{
    char path[4096];
    struct str text = {0}, have = {0}, want = {0};
    bool good;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    good = read_file(path, &text);
    process(name, &text, &have);
    snprintf(path, sizeof(path), "%s/%.*sout", folder, (int)(strlen(name) - strlen("frit")), name);
    if (good && bless) {
        good = write_file(path, &have);
    } else if (good) {
        good = read_file(path, &want) && same(&have, &want);
        if (!good)
            printf("%s: expected\n%sgot\n%s", path, want.text ? want.text : "",
                   have.text ? have.text : "");
    }
    str_fini(&text);
    str_fini(&have);
    str_fini(&want);
    return good;
}

static int is_case(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 5 && strcmp(entry->d_name + length - 5, ".frit") == 0;
}

int main(int argc, char **argv)
{
    bool bless = argc == 3 && strcmp(argv[1], "--bless") == 0;
    struct dirent **entries;
    int n, failed = 0;

    if (argc != 2 + bless) {
        fprintf(stderr, "usage: %s [--bless] FOLDER\n", argv[0]);
        return 2;
    }
    n = scandir(argv[1 + bless], &entries, is_case, alphasort);
    if (n <= 0) {
        fprintf(stderr, "%s: no cases\n", argv[1 + bless]);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        failed += !run_case(argv[1 + bless], entries[i]->d_name, bless);
        free(entries[i]);
    }
    free(entries);
    printf("%d cases, %d %s\n", n, bless ? n - failed : failed, bless ? "written" : "failed");
    return failed ? 1 : 0;
}
