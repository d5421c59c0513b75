/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of rows.def as devices have them, where they are made of arithmetic alone: compiled as
 * C, with what stands for the devices' instructions as wrong as those may be, they give exact
 * results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit/c/ctext.h"
#include "unit.h"

/* The words of a text that uses the functions. */
static void emit_words(enum ctext_dialect dialect, struct str *text)
{
    const struct ctext_target target = {dialect, 256, 32, 1 << 14, 4000};
    static const enum kir_op ops[] = {KIR_sqrt, KIR_rint, KIR_scale};
    frit_err err = {.struct_size = sizeof(err)};
    struct ctext_phase phases[1];
    struct ctext_kernels kernels;
    struct kir_module m;
    uint32_t at, value;

    kir_init(&m, "forms");
    kir_arg(&m, FRIT_F32, KIR_READ | KIR_WRITE);
    kir_arg(&m, FRIT_F64, KIR_READ | KIR_WRITE);
    kir_arg(&m, FRIT_F16, KIR_READ | KIR_WRITE);
    kir_phase(&m, 32);
    at = kir_emit(&m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    value = kir_emit_as(&m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    for (uint32_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        value = kir_emit(&m, ops[i], value, ops[i] == KIR_scale ? value : KIR_NONE, KIR_NONE);
    kir_emit_imm(&m, KIR_store, 0, at, value, KIR_NONE);
    value = kir_emit_as(&m, KIR_load, KIR_F64, 1, at, KIR_NONE, KIR_NONE);
    kir_emit_imm(&m, KIR_store, 1, at, kir_unary(&m, KIR_sqrt, value), KIR_NONE);
    value = kir_emit_as(&m, KIR_load, KIR_F32, 2, at, KIR_NONE, KIR_NONE);
    kir_emit_imm(&m, KIR_store, 2, at, value, KIR_NONE);
    assert_int_equal(ctext_emit_gpu(&m, &target, true, text, phases, &kernels, &err), FRIT_OK);
    kir_fini(&m);
}

/* The function that begins like this. */
static void write_function(FILE *file, const char *words, const char *head)
{
    const char *from = strstr(words, head), *end = from ? strstr(from, "\n}\n") : NULL;

    if (!end)
        fail_msg("there is no `%s`", head);
    fprintf(file, "%.*s\n}\n", (int)(end - from), from);
}

/* A definition that is one line, from rows.def. */
static void write_line(FILE *file, const char *words, const char *head)
{
    const char *from = strstr(words, head);

    if (!from)
        fail_msg("there is no `%s`", head);
    fprintf(file, "%.*s\n", (int)strcspn(from, "\n"), from);
}

static void write_dialect(FILE *file, enum ctext_dialect dialect)
{
    static const char *const names[] = {"cuda", "hip"};
    static const char *const functions[] = {"scale_f32",  "rint_f32",     "sqrt_f32",
                                            "sqrt_f64",   "power_of_two", "half_load",
                                            "half_store", "upper_store"};
    struct str words = {0};

    emit_words(dialect, &words);
    for (uint32_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        fprintf(file, "#define %s %s_%s\n", functions[i], functions[i], names[dialect]);
    write_function(file, words.text, "DEVICE f32 power_of_two(");
    write_function(file, words.text, "DEVICE f32 scale_f32(");
    if (dialect == CTEXT_CUDA) {
        write_function(file, words.text, "DEVICE f32 rint_f32(");
    } else {
        write_function(file, words.text, "DEVICE f32 sqrt_f32(");
        write_function(file, words.text, "DEVICE f64 sqrt_f64(");
        write_line(file, words.text, "static inline u16 upper_store(");
        fputs("#ifdef HAS_FLOAT16\n", file);
        write_function(file, words.text, "DEVICE f32 half_load(");
        write_function(file, words.text, "DEVICE u16 half_store(");
        fputs("#endif\n", file);
    }
    for (uint32_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        fprintf(file, "#undef %s\n", functions[i]);
    str_fini(&words);
}

static void forms_are_exact(void **state)
{
    const char *build = getenv("FRIT_TEST_BUILD");
    char folder[256], command[2048];
    FILE *file;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/forms.XXXXXX", build ? build : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "%s/forms.h", folder);
    file = fopen(command, "w");
    assert_non_null(file);
    write_dialect(file, CTEXT_CUDA);
    write_dialect(file, CTEXT_HIP);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof(command),
             "cd %s && " CTEXT_CC " -std=c17 -O1 -ffp-contract=off -I. "
             "-I%s/kernels -I%s/tests %s/tests/kernels/emit/c/forms_check.c -lm -o program && "
             "./program && "
             "rm -r %s",
             folder, CTEXT_SOURCE, CTEXT_SOURCE, CTEXT_SOURCE, folder);
    if (system(command))
        fail_msg("failed: %s", command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
