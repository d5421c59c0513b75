/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of random cases: memory, eval, comparison. */
#include <stdio.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/text.h"

#include "emit/random.h"
#include "unit.h"

void random_case_fill(const struct random_case *c, void **memory)
{
    for (uint32_t i = 0; i < c->module.n_args; i++) {
        memory[i] = malloc(c->args[i].bytes);
        if (!memory[i])
            fail_msg("no memory for an argument of a random case");
        memcpy(memory[i], c->args[i].initial, c->args[i].bytes);
    }
}

void random_case_free(const struct random_case *c, void **memory)
{
    for (uint32_t i = 0; i < c->module.n_args; i++)
        free(memory[i]);
}

void random_case_eval(const struct random_case *c, void *const *memory)
{
    struct eval_arg args[RANDOM_ARGS];
    frit_err err = {.struct_size = sizeof(err)};

    for (uint32_t i = 0; i < c->module.n_args; i++)
        args[i] = (struct eval_arg){memory[i], 0, c->args[i].bytes};
    if (eval_run(&c->module, c->words, args, c->grid, &err))
        fail_msg("eval: %s", err.text);
}

static bool is_nan(uint32_t dtype, uint64_t bits)
{
    switch (dtype) {
    case FRIT_F16:
        return (bits & 0x7fff) > 0x7c00;
    case FRIT_BF16:
        return (bits & 0x7fff) > 0x7f80;
    case FRIT_F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case FRIT_F64:
        return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default:
        return false;
    }
}

/* What to look at when a case fails. */
static void print_case(const struct random_case *c)
{
    struct str text = {0};

    kir_print(&c->module, &text);
    fputs(text.text ? text.text : "", stderr); /* print_error cuts */
    for (uint32_t i = 0; i < c->module.n_phases; i++)
        print_error("# grid of phase %u: %u, %u, %u\n", i, c->grid[i][0], c->grid[i][1],
                    c->grid[i][2]);
    for (uint32_t i = 0; i < c->module.n_params; i++)
        print_error("# param %u: %#llx\n", i, (unsigned long long)c->words[i]);
    str_fini(&text);
}

void random_case_compare(const struct random_case *c, const char *name, void *const *expected,
                         void *const *got)
{
    for (uint32_t i = 0; i < c->module.n_args; i++) {
        uint32_t dtype = c->module.args[i].dtype, size = frit_dtype_bits(dtype) / 8;

        for (uint32_t k = 0; k < c->args[i].count; k++) {
            uint64_t a = 0, b = 0;

            memcpy(&a, (const char *)expected[i] + (size_t)k * size, size);
            memcpy(&b, (const char *)got[i] + (size_t)k * size, size);
            if (a == b || (is_nan(dtype, a) && is_nan(dtype, b)))
                continue;
            print_case(c);
            fail_msg("%s: argument %u, element %u is %#llx, should be %#llx", name, i, k,
                     (unsigned long long)b, (unsigned long long)a);
        }
    }
}
