/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels that were emitted as C.  ctext_test compiles this file together with the emitted
 * texts, the definitions that stand for a GPU's (ctext_host_words), and `kernels`, the table of
 * their functions.  The program reads launches from its first argument and writes their memory as
 * they leave it to its second; both files hold numbers and bytes as in memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long u64;
typedef void kernel(const u64 *params, const uint32_t *group, void *shared);

extern kernel *const kernels[];

enum { MAX_ARGS = 16, MAX_SPACES = 4, MAX_WORDS = 64, MAX_GROUPS = 4096 };
/* What kernels have to add to the y and z of a group, for grids larger than the device's limits. */
enum { BASE_Y = 3, BASE_Z = 5 };
/* How a launch passes its blocks, as write_run of ctext_test.c has it. */
enum { BY_VALUE, BY_ADDRESS, SPACES };

struct launch {
    u64 first_kernel, n_phases, n_words, n_args, passing, n_spaces;
    u64 bytes[MAX_ARGS];
    void *args[MAX_SPACES][MAX_ARGS];
    u64 block[MAX_SPACES * MAX_WORDS]; /* per space: addresses of args, then words */
};

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

static u64 get_number(FILE *in)
{
    u64 number;

    get(in, &number, sizeof(number));
    return number;
}

/* Each argument has an allocation of its exact size, so that the sanitizer sees accesses outside.
 */
static void read_space(FILE *in, struct launch *l, u64 space)
{
    u64 *block = l->block + space * (l->n_args + l->n_words);

    for (u64 i = 0; i < l->n_args; i++) {
        l->bytes[i] = get_number(in);
        l->args[space][i] = must(malloc(l->bytes[i]));
        get(in, l->args[space][i], l->bytes[i]);
        block[i] = (u64)(uintptr_t)l->args[space][i];
    }
    get(in, block + l->n_args, l->n_words * 8);
}

static void run_groups(kernel *run, const u64 *params, const uint32_t *grid, size_t shared_bytes)
{
    void *shared = must(malloc(shared_bytes ? shared_bytes : 1));

    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                run(params, (const uint32_t[3]){x, y - BASE_Y, z - BASE_Z}, shared);
        }
    }
    free(shared);
}

/* Builds the parameters as a driver does, and runs all groups; every space has grid[0] of them. */
static void run_phase(const struct launch *l, kernel *run, const uint32_t *grid, size_t shared)
{
    u64 params[1 + MAX_WORDS] = {(u64)BASE_Z << 32 | BASE_Y, (u64)(uintptr_t)l->block};
    uint32_t first_group[MAX_SPACES + 1], table[MAX_GROUPS], shift = 2;

    for (u64 i = 0; l->passing == BY_VALUE && i < l->n_args + l->n_words; i++)
        params[1 + i] = l->block[i];
    if (l->passing != SPACES) {
        run_groups(run, params, grid, shared);
        return;
    }
    for (uint32_t i = 0; i <= l->n_spaces; i++)
        first_group[i] = i * grid[0];
    for (uint32_t i = 0; i << shift < first_group[l->n_spaces]; i++)
        table[i] = (i << shift) / grid[0];
    params[2] = (u64)(uintptr_t)first_group;
    params[3] = (u64)(uintptr_t)table;
    params[4] = shift;
    run_groups(run, params, (const uint32_t[3]){first_group[l->n_spaces], 1, 1}, shared);
}

static void launch(FILE *in, FILE *out)
{
    static struct launch l;

    l.first_kernel = get_number(in);
    l.n_phases = get_number(in);
    l.n_words = get_number(in);
    l.n_args = get_number(in);
    l.passing = get_number(in);
    l.n_spaces = get_number(in);
    for (u64 i = 0; i < l.n_spaces; i++)
        read_space(in, &l, i);
    for (u64 i = 0; i < l.n_phases; i++) {
        uint32_t grid[3];
        u64 shared = get_number(in);

        get(in, grid, sizeof(grid));
        run_phase(&l, kernels[l.first_kernel + i], grid, shared);
    }
    for (u64 space = 0; space < l.n_spaces; space++) {
        for (u64 i = 0; i < l.n_args; i++) {
            fwrite(l.args[space][i], 1, l.bytes[i], out);
            free(l.args[space][i]);
        }
    }
}

int main(int argc, char **argv)
{
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;

    if (!out)
        return 1;
    for (u64 n = get_number(in); n > 0; n--)
        launch(in, out);
    fclose(in);
    return fclose(out) ? 1 : 0;
}
