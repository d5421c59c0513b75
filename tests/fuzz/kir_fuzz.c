/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of a kernel: refused with a line, or a module that keeps the rules and
 * whose text parses back to the same text and digest. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "ir/digest.h"
#include "ir/facts.h"
#include "ir/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* "line 1: ..." */
static void check_message(const frit_err *err)
{
    check(err->status == FRIT_INVALID);
    check(strncmp(err->text, "line ", 5) == 0 && err->text[5] >= '1' && err->text[5] <= '9');
    for (const char *c = err->text; *c; c++)
        check(*c >= ' ' && *c < 127);
}

static void check_facts(const struct kir_module *module)
{
    for (uint32_t i = 0; i < module->n_phases; i++) {
        struct facts facts;

        check(facts_init(&facts, module, i, NULL) == FRIT_OK);
        facts_fini(&facts);
    }
}

static void check_round_trip(const struct kir_module *module)
{
    uint8_t digest[2][KIR_DIGEST];
    struct str first = {0}, second = {0};
    struct kir_module again;

    kir_print(module, &first);
    check(!first.failed && kir_parse(first.text, first.length, &again, NULL) == FRIT_OK);
    kir_print(&again, &second);
    check(first.length == second.length && memcmp(first.text, second.text, first.length) == 0);
    kir_digest(module, digest[0]);
    kir_digest(&again, digest[1]);
    check(memcmp(digest[0], digest[1], KIR_DIGEST) == 0);
    kir_fini(&again);
    str_fini(&first);
    str_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); /* of the exact size, so that a sanitizer sees its end */
    struct kir_module module;
    frit_err err = ERR_INIT;

    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    if (kir_parse(text, size, &module, &err)) {
        check_message(&err);
    } else {
        check_facts(&module);
        check_round_trip(&module);
    }
    kir_fini(&module);
    free(text);
    return 0;
}
