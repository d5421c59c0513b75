/* SPDX-License-Identifier: Apache-2.0 */
/* Runs compiled texts: the program that ctext_test builds has this, the texts, and `kernels`, the
 * table of their functions.  It reads launches from the file named first and writes the arguments
 * as they are afterwards to the second; both are numbers and bytes as they lie in memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void kernel(const uint64_t *words, void *const *args, const uint32_t *group, void *scratch);

extern kernel *const kernels[];

static void *must(void *memory)
{
    if (!memory)
        exit(2);
    return memory;
}

static void get(FILE *in, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, in) != bytes)
        exit(3);
}

static uint64_t get_number(FILE *in)
{
    uint64_t number;

    get(in, &number, sizeof(number));
    return number;
}

static void run_phase(kernel *run, const uint32_t *grid, size_t scratch_bytes,
                      const uint64_t *words, void *const *args)
{
    void *scratch = must(malloc(scratch_bytes ? scratch_bytes : 1));

    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                run(words, args, (const uint32_t[3]){x, y, z}, scratch);
        }
    }
    free(scratch);
}

/* Arguments and words are as large as said, so that a sanitizer sees what is outside. */
static void launch(FILE *in, FILE *out)
{
    uint64_t first = get_number(in), n_phases = get_number(in), n_words = get_number(in);
    uint64_t n_args = get_number(in), bytes[16];
    uint64_t *words = must(malloc(n_words * 8 + 1));
    void *args[16];

    get(in, words, n_words * 8);
    for (uint64_t i = 0; i < n_args; i++) {
        bytes[i] = get_number(in);
        args[i] = must(malloc(bytes[i]));
        get(in, args[i], bytes[i]);
    }
    for (uint64_t i = 0; i < n_phases; i++) {
        uint32_t grid[3];
        uint64_t scratch = get_number(in);

        get(in, grid, sizeof(grid));
        run_phase(kernels[first + i], grid, scratch, words, args);
    }
    for (uint64_t i = 0; i < n_args; i++) {
        fwrite(args[i], 1, bytes[i], out);
        free(args[i]);
    }
    free(words);
}

int main(int argc, char **argv)
{
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;

    if (!out)
        return 1;
    for (uint64_t n = get_number(in); n > 0; n--)
        launch(in, out);
    fclose(in);
    return fclose(out) ? 1 : 0;
}
