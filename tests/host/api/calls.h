/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function as an entry of a table, from calls.def. */
#ifndef TESTS_API_CALLS_H
#define TESTS_API_CALLS_H

#include <frit/dlpack.h>
#include <frit/frit.h>
#include <frit/grad.h>
#include <frit/inspect.h>

/* What the words of calls.def stand for in one round. */
struct arguments {
    frit_device *device;
    frit_tensor *tensor;
    frit_tensor *list[2];
    const void *attrs;
    frit_dims dims;
    frit_axes axes;
    frit_slices slices;
    int64_t integer;
    double number;
    uint32_t word;
};

#define T      (w->tensor)
#define LIST   (w->list)
#define COUNT  2
#define OUT    NULL
#define DEVICE (w->device)
#define ATTRS  (w->attrs)
#define DIMS   (w->dims)
#define AXES   (w->axes)
#define SLICES (w->slices)
#define INT    (w->integer)
#define FLOAT  (w->number)
#define WORD   (w->word)

struct entry {
    const char *name;
    frit_tensor *(*tensor)(const struct arguments *w);
    frit_status (*status)(const struct arguments *w);
    void (*other)(const struct arguments *w);
    const char *arguments;
};

#define TENSOR(f, ...)                                      \
    static frit_tensor *call_##f(const struct arguments *w) \
    {                                                       \
        return f(__VA_ARGS__);                              \
    }
#define STATUS(f, ...)                                     \
    static frit_status call_##f(const struct arguments *w) \
    {                                                      \
        (void)w;                                           \
        return f(__VA_ARGS__);                             \
    }
#define OTHER(f, ...)                               \
    static void call_##f(const struct arguments *w) \
    {                                               \
        (void)w;                                    \
        (void)f(__VA_ARGS__);                       \
    }
#include "api/calls.def"

#define TENSOR(f, ...) {.name = #f, .tensor = call_##f, .arguments = #__VA_ARGS__},
#define STATUS(f, ...) {.name = #f, .status = call_##f, .arguments = #__VA_ARGS__},
#define OTHER(f, ...)  {.name = #f, .other = call_##f, .arguments = #__VA_ARGS__},
static const struct entry entries[] = {
#include "api/calls.def"
};
enum { N_ENTRIES = sizeof(entries) / sizeof(entries[0]) };

#endif
