/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes first: cmocka with what it needs, without its macro `fail`, which is the
 * name of a function of ours. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail

#endif
