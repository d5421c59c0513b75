/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes first: cmocka with what it needs, without its macro `fail`, which
 * is the name of a function of ours; `fail_msg` does without it, and ends in abort() to say that it
 * does not return. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#undef fail
#undef fail_msg
#define fail_msg(...) \
    (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__), abort())

#endif
