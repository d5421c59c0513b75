/* SPDX-License-Identifier: Apache-2.0 */
#include "host/grad/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { PREFIX = 10 /* of a file of NumPy format 1.0: magic, version, length of the header */ };

struct pack {
    char *file; /* NULL: there is none */
    const char *elements;
    uint64_t count;
};

struct reader {
    const char *folder, *name;
    struct pack packs[FRIT_DTYPE_LIMIT];
    struct stored_case one;
    unsigned line;
};

void stored_draw(uint64_t seed, uint64_t count, double *numbers)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        numbers[i] = (double)((z ^ z >> 31) >> 11) * 0x1p-53;
    }
}

/* ---- packs ---- */

static void open_pack(struct reader *reader, uint32_t dtype)
{
    struct pack *pack = &reader->packs[dtype];
    char path[512];
    FILE *file;
    long size, header;

    snprintf(path, sizeof(path), "%s/%s.%s.npy", reader->folder, reader->name,
             frit_dtype_name(dtype));
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: cannot be opened; tests run in the source folder", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    rewind(file);
    pack->file = malloc((size_t)size + 1);
    assert_non_null(pack->file);
    assert_int_equal(fread(pack->file, 1, (size_t)size, file), size);
    fclose(file);
    if (size < PREFIX || memcmp(pack->file, "\x93NUMPY\x01\x00", 8) != 0)
        fail_msg("%s: not in NumPy format 1.0", path);
    header = (unsigned char)pack->file[8] | (unsigned char)pack->file[9] << 8;
    pack->elements = pack->file + PREFIX + header;
    pack->count = (uint64_t)(size - PREFIX - header) / frit_storage_bytes(dtype, 1);
}

static const void *at(struct reader *reader, uint32_t dtype, uint64_t place, uint64_t count)
{
    struct pack *pack = &reader->packs[dtype];

    if (!pack->file)
        open_pack(reader, dtype);
    if (place + count > pack->count)
        fail_msg("%s.cases:%u: place %llu lies outside", reader->name, reader->line,
                 (unsigned long long)place);
    return pack->elements + place * frit_storage_bytes(dtype, 1);
}

/* ---- lines ---- */

static void wrong_line(const struct reader *reader, const char *line)
{
    fail_msg("%s/%s.cases:%u: cannot be read: %s", reader->folder, reader->name, reader->line,
             line);
}

static void add_text(struct stored_case *one, const char *before, const char *text)
{
    const size_t length = strlen(one->program);

    assert_true(length + strlen(before) + strlen(text) + 2 < sizeof(one->program));
    snprintf(one->program + length, sizeof(one->program) - length, "%s%s\n", before, text);
}

static frit_dims read_dims(const char *text)
{
    frit_dims dims = {0};
    char *end;

    for (text++; *text && *text != ']'; text = *end == ',' ? end + 1 : end)
        dims.dim[dims.rank++] = strtoll(text, &end, 10);
    return dims;
}

static void read_input(struct reader *reader, const char *line)
{
    struct stored_input *in = &reader->one.in[reader->one.n_in++];
    const char *dims = strchr(line, '['), *rest = strchr(line, ']');
    unsigned long long seed;
    char dtype[8], text[128];

    assert_true(reader->one.n_in <= STORED_INPUTS);
    memset(in, 0, sizeof(*in));
    if (!dims || !rest || sscanf(line, "in %15s %7[a-z0-9]", in->name, dtype) != 2 ||
        sscanf(rest, "] %llu %lf %lf %lf", &seed, &in->low, &in->high, &in->parts) != 4)
        wrong_line(reader, line);
    in->dtype = frit_dtype_of_name(dtype);
    in->dims = read_dims(dims);
    in->seed = seed;
    in->count = 1;
    for (int64_t d = 0; d < in->dims.rank; d++)
        in->count *= (uint64_t)in->dims.dim[d];
    snprintf(text, sizeof(text), "input %s : %s%.*s", in->name, dtype, (int)(rest + 1 - dims),
             dims);
    add_text(&reader->one, "", text);
}

static void read_loss(struct reader *reader, const char *line)
{
    struct stored_case *one = &reader->one;
    unsigned long long place;

    if (sscanf(line, "loss @%llu", &place) != 1 || one->n_losses == STORED_LOSSES ||
        one->dtype != FRIT_F64)
        wrong_line(reader, line);
    memcpy(&one->losses[one->n_losses++], at(reader, FRIT_F64, place, 1), sizeof(double));
}

static void read_gradient(struct reader *reader, const char *line)
{
    unsigned long long place;
    char name[16];

    if (sscanf(line, "grad %15s @%llu", name, &place) != 2)
        wrong_line(reader, line);
    for (uint32_t i = 0; i < reader->one.n_in; i++) {
        struct stored_input *in = &reader->one.in[i];

        if (strcmp(in->name, name) == 0) {
            in->grad = at(reader, in->dtype, place, in->count);
            return;
        }
    }
    wrong_line(reader, line);
}

static void read_case(struct reader *reader, const char *line)
{
    struct stored_case *one = &reader->one;
    char dtype[8];

    memset(one, 0, sizeof(*one));
    if (sscanf(line, "case %31s %7s", one->name, dtype) != 2)
        wrong_line(reader, line);
    one->dtype = frit_dtype_of_name(dtype);
    one->line = reader->line;
}

static void read_line(struct reader *reader, const char *line)
{
    if (strncmp(line, "case ", 5) == 0)
        read_case(reader, line);
    else if (strncmp(line, "in ", 3) == 0)
        read_input(reader, line);
    else if (strncmp(line, "loss ", 5) == 0)
        read_loss(reader, line);
    else if (strncmp(line, "grad ", 5) == 0)
        read_gradient(reader, line);
    else if (strncmp(line, "  ", 2) == 0)
        add_text(&reader->one, "", line + 2);
    else if (*line && *line != '#')
        wrong_line(reader, line);
}

unsigned stored_each(const char *folder, const char *name,
                     void (*use)(const struct stored_case *one, void *ctx), void *ctx)
{
    static struct reader reader;
    char path[512], line[512];
    unsigned cases = 0;
    FILE *file;

    memset(&reader, 0, sizeof(reader));
    reader.folder = folder;
    reader.name = name;
    snprintf(path, sizeof(path), "%s/%s.cases", folder, name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s: cannot be opened; tests run in the source folder", path);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        reader.line++;
        read_line(&reader, line);
        if (!*line && *reader.one.name) {
            use(&reader.one, ctx);
            cases++;
            *reader.one.name = '\0';
        }
    }
    fclose(file);
    if (*reader.one.name)
        fail_msg("%s: no empty line at the end", path);
    for (uint32_t i = 0; i < FRIT_DTYPE_LIMIT; i++)
        free(reader.packs[i].file);
    return cases;
}
