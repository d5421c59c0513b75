/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy format 1.0 as numpy.save writes it: magic, version, a little-endian header length, a header
 * in text, the elements. */
#include "rows/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <frit/frit.h>

enum { PREFIX = 10 };

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data;

    if (!file)
        fail_msg("%s: cannot be opened; tests run in the source folder", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    data[*size] = '\0';
    fclose(file);
    return data;
}

static void pack_open(struct pack *pack, uint32_t dtype)
{
    char path[64];
    uint64_t element = frit_storage_bytes(dtype, 1);
    size_t size, header;

    snprintf(path, sizeof(path), "tests/data/rows/%s.npy", frit_dtype_name(dtype));
    if (element == 0)
        fail_msg("%s: no such element type", path);
    pack->file = read_file(path, &size);
    if (size < PREFIX || memcmp(pack->file, "\x93NUMPY\x01\x00", 8) != 0)
        fail_msg("%s: not in NumPy format 1.0", path);
    header = (size_t)(unsigned char)pack->file[8] | (size_t)(unsigned char)pack->file[9] << 8;
    if (PREFIX + header > size)
        fail_msg("%s: cut in its header", path);
    pack->elements = pack->file + PREFIX + header;
    pack->count = (size - PREFIX - header) / element;
}

const void *packs_at(struct packs *packs, uint32_t dtype, uint64_t place, uint64_t count)
{
    struct pack *pack = &packs->of[dtype];

    if (!pack->file)
        pack_open(pack, dtype);
    if (place > pack->count || count > pack->count - place)
        fail_msg("%s.npy has %llu elements, not %llu from number %llu on", frit_dtype_name(dtype),
                 (unsigned long long)pack->count, (unsigned long long)count,
                 (unsigned long long)place);
    return pack->elements + place * frit_storage_bytes(dtype, 1);
}

void packs_fini(struct packs *packs)
{
    for (uint32_t i = 0; i < FRIT_DTYPE_LIMIT; i++)
        free(packs->of[i].file);
    *packs = (struct packs){0};
}
