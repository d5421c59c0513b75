/* SPDX-License-Identifier: Apache-2.0 */
/* libtcc takes and gives files: those in memory have a name below /proc. */
#include "jit.h"

#include <libtcc.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The code has pages of its own, which cannot be accessed once it is unloaded. */
struct jit {
    TCCState *state;
    void *pages;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what texts call ---- */

static uint32_t add_32(uint32_t *at, uint32_t value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static uint64_t add_64(uint64_t *at, uint64_t value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static int exchange_32(uint32_t *at, uint32_t *expected, uint32_t *desired)
{
    return __atomic_compare_exchange(at, expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Conversions that the compiler leaves to its run-time library. */
static float f32_of_u64(unsigned long long a)
{
    return (float)a;
}

static double f64_of_u64(unsigned long long a)
{
    return (double)a;
}

static unsigned long long u64_of_f32(float a)
{
    return (unsigned long long)a;
}

static unsigned long long u64_of_f64(double a)
{
    return (unsigned long long)a;
}

#define FUNCTION(name, function)         \
    {                                    \
        name, (void (*)(void))(function) \
    }

static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
    FUNCTION("fmaf", fmaf),
    FUNCTION("fma", fma),
    FUNCTION("sqrtf", sqrtf),
    FUNCTION("sqrt", sqrt),
    FUNCTION("floorf", floorf),
    FUNCTION("floor", floor),
    FUNCTION("ceilf", ceilf),
    FUNCTION("ceil", ceil),
    FUNCTION("truncf", truncf),
    FUNCTION("trunc", trunc),
    FUNCTION("rintf", rintf),
    FUNCTION("rint", rint),
    FUNCTION("fabsf", fabsf),
    FUNCTION("fabs", fabs),
    FUNCTION("memcpy", memcpy),
    FUNCTION("memset", memset),
    FUNCTION("memmove", memmove),
    FUNCTION("add_32", add_32),
    FUNCTION("add_64", add_64),
    FUNCTION("exchange_32", exchange_32),
    FUNCTION("clock_ns", clock_ns),
    FUNCTION("__floatundisf", f32_of_u64),
    FUNCTION("__floatundidf", f64_of_u64),
    FUNCTION("__fixunssfdi", u64_of_f32),
    FUNCTION("__fixunsdfdi", u64_of_f64),
};

/* The library is not built for shared objects: its references to variables of the C library must
 * resolve within this one, so the linker makes them references to these (--wrap). */
extern FILE *__wrap_stdout, *__wrap_stderr, *__real_stdout, *__real_stderr;
extern char **__wrap_environ, **__real_environ;
__attribute__((visibility("hidden"))) FILE *__wrap_stdout, *__wrap_stderr;
__attribute__((visibility("hidden"))) char **__wrap_environ;

__attribute__((constructor)) static void set_variables(void)
{
    __wrap_stdout = __real_stdout;
    __wrap_stderr = __real_stderr;
    __wrap_environ = __real_environ;
}

/* ---- files in memory ---- */

static int open_file(char name[64])
{
    int file = memfd_create("fake-gpu", MFD_CLOEXEC);

    snprintf(name, 64, "/proc/self/fd/%d", file);
    return file;
}

static void *read_file(int file, size_t *n_bytes)
{
    const off_t end = lseek(file, 0, SEEK_END);
    char *bytes = end > 0 ? malloc((size_t)end) : NULL;

    *n_bytes = end > 0 ? (size_t)end : 0;
    if (bytes && pread(file, bytes, *n_bytes, 0) != end) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

/* ---- compiling ---- */

/* Appends a message to the log. */
static void on_error(void *log, const char *message)
{
    char **text = log, *longer = NULL;

    if (asprintf(&longer, "%s%s\n", *text ? *text : "", message) < 0)
        return;
    free(*text);
    *text = longer;
}

static TCCState *new_state(int output, char **log)
{
    TCCState *state = tcc_new();

    if (!state)
        return NULL;
    tcc_set_error_func(state, log, on_error);
    tcc_set_options(state, output == TCC_OUTPUT_MEMORY ? "-nostdlib -xb" : "-nostdlib -nostdinc");
    tcc_set_output_type(state, output);
    return state;
}

void *jit_compile(const char *text, size_t *n_bytes, char **log)
{
    char name[64];
    int file = open_file(name);
    void *object = NULL;
    TCCState *state;

    *log = NULL;
    pthread_mutex_lock(&lock);
    state = new_state(TCC_OUTPUT_OBJ, log);
    if (state && !tcc_compile_string(state, text) && !tcc_output_file(state, name))
        object = read_file(file, n_bytes);
    if (state)
        tcc_delete(state);
    pthread_mutex_unlock(&lock);
    if (file >= 0)
        close(file);
    return object;
}

/* ---- loading ---- */

static bool add_object(TCCState *state, const void *object, size_t n_bytes)
{
    char name[64];
    int file = open_file(name);
    bool added =
        file >= 0 && write(file, object, n_bytes) == (ssize_t)n_bytes && !tcc_add_file(state, name);

    if (file >= 0)
        close(file);
    for (size_t i = 0; i < sizeof functions / sizeof *functions && added; i++)
        added = !tcc_add_symbol(state, functions[i].name,
                                (const void *)(uintptr_t)functions[i].function);
    return added;
}

static bool place(struct jit *jit)
{
    const int bytes = tcc_relocate(jit->state, NULL);

    if (bytes <= 0)
        return false;
    jit->bytes = (size_t)bytes;
    jit->pages = mmap(NULL, jit->bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return jit->pages != MAP_FAILED && !tcc_relocate(jit->state, jit->pages);
}

struct jit *jit_load(const void *object, size_t n_bytes)
{
    struct jit *jit = calloc(1, sizeof *jit);
    char *log = NULL;
    bool loaded;

    pthread_mutex_lock(&lock);
    jit->state = new_state(TCC_OUTPUT_MEMORY, &log);
    loaded = jit->state && add_object(jit->state, object, n_bytes) && place(jit);
    if (jit->state)
        tcc_set_error_func(jit->state, NULL, NULL);
    pthread_mutex_unlock(&lock);
    if (!loaded) {
        fprintf(stderr, "fake GPU: %s", log ? log : "cannot load a module\n");
        jit_unload(jit);
        jit = NULL;
    }
    free(log);
    return jit;
}

void *jit_symbol(struct jit *jit, const char *name)
{
    void *symbol;

    pthread_mutex_lock(&lock);
    symbol = tcc_get_symbol(jit->state, name);
    pthread_mutex_unlock(&lock);
    return symbol;
}

void jit_unload(struct jit *jit)
{
    pthread_mutex_lock(&lock);
    if (jit->state)
        tcc_delete(jit->state);
    if (jit->pages && jit->pages != MAP_FAILED)
        munmap(jit->pages, jit->bytes);
    pthread_mutex_unlock(&lock);
    free(jit);
}
