/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the lines; a case is handed out at the empty line after it. */
#include "rows/cases.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

struct reader {
    const char *path;
    unsigned line;
    struct row_case *now; /* its row is "" between cases */
};

static void refuse(const struct reader *r, const char *why, const char *text)
{
    fail_msg("%s:%u: %s: %s", r->path, r->line, why, text);
}

static bool read_tolerance(const char *text, struct tolerance *out)
{
    unsigned long long ulp;
    int n;

    *out = (struct tolerance){.exact = strcmp(text, "exact") == 0};
    if (out->exact)
        return true;
    n = sscanf(text, "ulp %llu abs %lf", &ulp, &out->absolute);
    out->ulp = ulp;
    return n >= 1;
}

/* NAME DTYPE[N, N] @PLACE */
static bool read_tensor(const char *text, struct case_tensor *out)
{
    char dtype[CASE_NAME];
    char *end;
    int at = 0;

    if (sscanf(text, "%31s %31[^[][%n", out->name, dtype, &at) != 2 || !at)
        return false;
    out->dtype = frit_dtype_of_name(dtype);
    out->dims = FRIT_RANK0;
    out->count = 1;
    for (text += at; *text != ']'; text = end + strspn(end, ", ")) {
        int64_t extent = strtoll(text, &end, 10);

        if (end == text || extent < 0 || out->dims.rank == FRIT_MAX_RANK)
            return false;
        out->dims.dim[out->dims.rank++] = extent;
        out->count *= (uint64_t)extent;
    }
    if (strncmp(text, "] @", 3) != 0)
        return false;
    out->place = strtoull(text + 3, &end, 10);
    return *end == '\0' && end > text + 3 && out->dtype != FRIT_NO_DTYPE;
}

static void add_line(const struct reader *r, const char *line)
{
    char *program = r->now->program;
    size_t used = strlen(program), more = strlen(line);

    if (used + more + 2 > sizeof(r->now->program))
        refuse(r, "no room for this line", line);
    snprintf(program + used, sizeof(r->now->program) - used, "%s\n", line);
}

static void add_input(const struct reader *r, const char *text)
{
    const struct case_tensor *in = &r->now->in[r->now->n_in - 1];
    const char *type = text + strlen(in->name) + 1;
    char line[256];

    if (snprintf(line, sizeof(line), "input %s : %.*s", in->name,
                 (int)(strchr(type, '@') - type - 1), type) >= (int)sizeof(line))
        refuse(r, "a type of too many characters", text);
    add_line(r, line);
}

static void start(const struct reader *r, const char *text)
{
    *r->now = (struct row_case){.file = r->path, .line = r->line};
    if (sscanf(text, "%31s %31s", r->now->row, r->now->dtype) != 2)
        refuse(r, "no case ROW DTYPE", text);
}

/* The text after `word` and a blank; NULL if the line does not begin so. */
static const char *after(const char *line, const char *word)
{
    size_t length = strlen(word);

    return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static void read_line(const struct reader *r, const char *line)
{
    struct row_case *now = r->now;
    const char *text;
    bool good = true;

    if ((text = after(line, "case"))) {
        start(r, text);
    } else if ((text = after(line, "tight"))) {
        good = read_tolerance(text, &now->tight);
        now->loose = now->tight;
    } else if ((text = after(line, "loose"))) {
        good = read_tolerance(text, &now->loose);
    } else if ((text = after(line, "seed"))) {
        now->has_seed = true;
        now->seed = strtoull(text, NULL, 10);
    } else if ((text = after(line, "in")) && now->n_in < CASE_TENSORS) {
        good = read_tensor(text, &now->in[now->n_in++]);
        if (good)
            add_input(r, text);
    } else if ((text = after(line, "out")) && now->n_out < CASE_TENSORS) {
        good = read_tensor(text, &now->out[now->n_out++]);
    } else if (line[0] == ' ') {
        add_line(r, line);
    } else {
        good = line[0] == '#';
    }
    if (!good)
        refuse(r, "not understood", line);
}

static unsigned read_family(const char *path, struct row_case *now,
                            void (*use)(const struct row_case *, void *), void *ctx)
{
    struct reader r = {.path = path, .now = now};
    FILE *file = fopen(path, "r");
    unsigned count = 0;
    char line[512];

    assert_non_null(file);
    now->row[0] = '\0';
    for (bool more = true; more;) {
        more = fgets(line, sizeof(line), file);
        r.line++;
        if (more && line[0] != '\n') {
            if (!strchr(line, '\n'))
                refuse(&r, "too long a line", line);
            line[strcspn(line, "\n")] = '\0';
            read_line(&r, line);
        } else if (now->row[0]) {
            use(now, ctx);
            count++;
            now->row[0] = '\0';
        }
    }
    fclose(file);
    return count;
}

unsigned cases_each(void (*use)(const struct row_case *one, void *ctx), void *ctx)
{
    struct row_case *now = calloc(1, sizeof(*now));
    unsigned count = 0;
    glob_t found;

    assert_non_null(now);
    if (glob("tests/data/rows/*.cases", 0, NULL, &found) != 0)
        fail_msg("no tests/data/rows/*.cases; tests run in the source folder");
    for (size_t i = 0; i < found.gl_pathc; i++)
        count += read_family(found.gl_pathv[i], now, use, ctx);
    globfree(&found);
    free(now);
    return count;
}
