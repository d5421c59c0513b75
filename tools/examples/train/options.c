/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options.h"

#include "train/checkpoint.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, NUMBER };

static const struct option {
    const char *name, *argument, *meaning;
    enum kind kind;
    size_t offset;
    uint64_t limit; /* of numbers, which begin with 1 */
} rows[] = {
    {"--device", "LIST",
     "the first usable device of it, by default as configured; each replica takes the next one",
     TEXT, offsetof(struct options, device), 0},
    {"--model", "NAME", "cnn (default) or mlp, of tools/models", TEXT,
     offsetof(struct options, model), 0},
    {"--epochs", "N", "times that each image is seen", NUMBER, offsetof(struct options, epochs),
     MAX_EPOCHS},
    {"--seed", "N", "of weights, order and shifts; default: 1", NUMBER,
     offsetof(struct options, seed), UINT64_MAX},
    {"--replicas", "N",
     "split every batch over N threads, each with the parameters; 1, 2, 4, 8, 16", NUMBER,
     offsetof(struct options, replicas), MAX_REPLICAS},
    {"--svg", "FILE", "draw the curves into it", TEXT, offsetof(struct options, svg), 0},
    {"--save", "FILE", "keep the run in it (safetensors), after each epoch and at the end", TEXT,
     offsetof(struct options, save), 0},
    {"--resume", "FILE", "go on where the run of this file was; network, seed, epochs are its",
     TEXT, offsetof(struct options, resume), 0},
    {"--stop", "N", "end after step N, as if interrupted", NUMBER, offsetof(struct options, stop),
     UINT64_MAX},
    {"--validate", "",
     "test with 297 of the training images, drawn by the seed and not learned from", FLAG,
     offsetof(struct options, validate), 0},
    {"--help", "", "this text", FLAG, offsetof(struct options, help), 0},
};

void options_help(void)
{
    puts("usage: frit-train-digits [OPTION...] [ROOT]\n\n"
         "Trains a network that reads handwritten digits, from random weights, with the images in\n"
         "ROOT/tests/data/digits; ROOT is the top of the source tree, by default the working\n"
         "directory.  Under `frit launch -n N` or mpirun each process is a replica.\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        printf("  %-10s %-5s %s\n", rows[i].name, rows[i].argument, rows[i].meaning);
}

static const struct option *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static int wrong(const char *what, const char *which)
{
    fprintf(stderr, "frit-train-digits: %s %s; see --help\n", what, which);
    return 0;
}

static int set_number(uint64_t *out, const struct option *option, const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || number < 1 || number > option->limit)
        return wrong("no such number:", text);
    *out = number;
    return 1;
}

static int set_option(struct options *options, const struct option *option, const char *text)
{
    void *field = (char *)options + option->offset;

    if (option->kind == NUMBER)
        return set_number(field, option, text);
    if (option->kind == TEXT)
        *(const char **)field = text;
    else
        *(uint64_t *)field = 1;
    return 1;
}

int options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.root = NULL};
    for (int i = 1; i < argc; i++) {
        const struct option *option = row_of(argv[i]);

        if (!option) {
            if (argv[i][0] == '-' || options->root)
                return wrong("unexpected", argv[i]);
            options->root = argv[i];
            continue;
        }
        if (option->kind != FLAG && ++i == argc)
            return wrong("there is nothing after", option->name);
        if (!set_option(options, option, argv[i]))
            return 0;
    }
    if (options->replicas && BATCH % options->replicas)
        return wrong("batches of 64 cannot be split into as many parts as", "--replicas says");
    if (options->model && !network_named(options->model))
        return wrong("there is no network", options->model);
    return 1;
}
