/* SPDX-License-Identifier: Apache-2.0 */
/* Text in, text out: kernels_ir_golden [--bless] FOLDER.
 *
 * Each NAME.kir is parsed; the printed module, or the message, must be what NAME.out holds, and
 * what is printed must parse and print to itself and have the same digest.  --bless writes the .out
 * files instead; read the difference before you commit it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "ir/digest.h"
#include "ir/text.h"

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
    bool good = file && fwrite(text->text, 1, text->length, file) == text->length;

    return file && fclose(file) == 0 && good;
}

static bool same(const struct str *a, const struct str *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static bool comes_back(const struct kir_module *module, const struct str *text)
{
    uint8_t digest[2][KIR_DIGEST];
    struct kir_module again;
    struct str second = {0};
    frit_err err = ERR_INIT;
    bool good;

    if (kir_parse(text->text, text->length, &again, &err)) {
        fprintf(stderr, "the printed text: %s\n", err.text);
        return false;
    }
    kir_print(&again, &second);
    kir_digest(module, digest[0]);
    kir_digest(&again, digest[1]);
    good = same(text, &second) && memcmp(digest[0], digest[1], KIR_DIGEST) == 0;
    str_fini(&second);
    kir_fini(&again);
    return good;
}

/* What the text gives: its module, or why there is none. */
static bool process(const struct str *text, struct str *out)
{
    struct kir_module module;
    frit_err err = ERR_INIT;
    bool good = true;

    if (kir_parse(text->text ? text->text : "", text->length, &module, &err)) {
        str_addf(out, "%s\n", err.text);
    } else {
        kir_print(&module, out);
        good = comes_back(&module, out);
    }
    kir_fini(&module);
    return good;
}

static bool run_case(const char *folder, const char *name, bool bless)
{
    char path[4096];
    struct str text = {0}, have = {0}, want = {0};
    bool good;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    good = read_file(path, &text) && process(&text, &have);
    if (!good)
        fprintf(stderr, "%s: does not come back\n", path);
    snprintf(path, sizeof(path), "%s/%.*sout", folder, (int)(strlen(name) - strlen("kir")), name);
    if (good && bless) {
        good = write_file(path, &have);
    } else if (good) {
        good = read_file(path, &want) && same(&have, &want);
        if (!good)
            fprintf(stderr, "%s: have\n%swant\n%s", path, have.text, want.text ? want.text : "");
    }
    str_fini(&text);
    str_fini(&have);
    str_fini(&want);
    return good;
}

static int is_case(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && strcmp(entry->d_name + length - 4, ".kir") == 0;
}

int main(int argc, char **argv)
{
    bool bless = argc == 3 && strcmp(argv[1], "--bless") == 0;
    struct dirent **entries;
    int n, failed = 0;

    if (argc != 2 && !bless) {
        fprintf(stderr, "usage: %s [--bless] FOLDER\n", argv[0]);
        return 2;
    }
    n = scandir(argv[argc - 1], &entries, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        failed += !run_case(argv[argc - 1], entries[i]->d_name, bless);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return n > 0 && !failed ? 0 : 1;
}
