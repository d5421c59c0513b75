/* SPDX-License-Identifier: Apache-2.0 */
/* What a report leaves out: the home folder, names of the user and the host. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "doctor/mask.h"

static void expect(const struct mask *mask, const char *text, const char *masked)
{
    struct str out = {0};

    mask_apply(mask, text, &out);
    assert_string_equal(out.text ? out.text : "", masked);
    str_fini(&out);
}

static void masks_words(void **state)
{
    struct mask mask = {0};

    (void)state;
    mask_add(&mask, "/home/ann/", "~");
    mask_add(&mask, "ann", "<user>");
    mask_add(&mask, "workstation7", "<host>");
    mask_add(&mask, "x", "<short>");
    mask_add(&mask, "", "<empty>");
    mask_add(&mask, NULL, "<null>");
    expect(&mask, "", "");
    expect(&mask, "/home/ann/frit.ini:2: annotate x", "~/frit.ini:2: annotate x");
    expect(&mask, "/home/ann", "~");
    expect(&mask, "/home/annika /srv/ann/y ann-2", "/home/annika /srv/<user>/y <user>-2");
    expect(&mask, "/srv/workstation7b and workstation7.local", "/srv/<host>b and <host>.local");
}

/* The longest first, whatever the order in which they are added. */
static void masks_the_longest(void **state)
{
    struct mask mask = {0};

    (void)state;
    mask_add(&mask, "host", "<host>");
    mask_add(&mask, "host.example.org", "<full>");
    expect(&mask, "host.example.org host", "<full> <host>");
}

static void knows_this_process(void **state)
{
    struct mask mask;

    (void)state;
    assert_int_equal(setenv("HOME", "/home/somebody-else", 1), 0);
    assert_int_equal(setenv("USER", "somebody", 1), 0);
    mask_of_process(&mask);
    expect(&mask, "/home/somebody-else/x belongs to somebody", "~/x belongs to <user>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_words),
        cmocka_unit_test(masks_the_longest),
        cmocka_unit_test(knows_this_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
