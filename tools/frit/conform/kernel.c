/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of other plugins as functions of the process, and by them commands that fail: what a
 * failed command does to the timeline, and what wait reports of it. */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "conform/bare.h"
#include "conform/launch.h"

enum { WORDS = 64, BYTES = WORDS * 4, FAILS = 1000 /* cookies from here on fail */ };

/* What the kernel gets as its context, and leaves there. */
struct work {
    struct bare *bare;
    atomic_uint calls;
    atomic_uint opaque; /* arguments without an address */
};

static const uint32_t *words_of(const struct work *work, const frit_arg *arg)
{
    const struct bare *bare = work->bare;
    const char *at =
        arg->memory ? bare->native->get(bare->device, arg->memory, FRIT_STR("host.ptr")) : NULL;

    return at ? (const uint32_t *)(const void *)(at + arg->offset + arg->origin) : NULL;
}

/* Every word of the output is one more than that of the input. */
static frit_status run_kernel(void *ctx, const frit_launch *launch, frit_err *err)
{
    struct work *work = ctx;
    const uint32_t *in = words_of(work, frit_arg_at(launch, 0));
    uint32_t *out = (uint32_t *)(uintptr_t)words_of(work, frit_arg_at(launch, 1));
    const frit_host_core *core =
        work->bare->root.get_interface(work->bare->root.self, FRIT_STR(FRIT_HOST_CORE));
    char text[64];
    int length = snprintf(text, sizeof(text), "kernel %" PRIu64 " fails", launch->cookie);

    atomic_fetch_add(&work->calls, 1);
    if (launch->cookie >= FAILS)
        return core->err_set(work->bare->root.self, err, FRIT_IO, 7,
                             (frit_str){text, (uint64_t)length});
    if (!in || !out) {
        atomic_fetch_add(&work->opaque, 1);
        return FRIT_OK;
    }
    for (uint32_t i = 0; i < WORDS; i++)
        out[i] = in[i] + 1;
    return FRIT_OK;
}

/* ---- a kernel and two buffers ---- */

struct dispatching {
    struct bare *bare;
    struct work work;
    frit_kernel *kernel;
    frit_allocation a, b;
    uint64_t value; /* of the last submit */
};

static bool lists_host_fn(const struct bare *bare)
{
    for (uint32_t i = 0; i < bare->info.n_formats; i++) {
        const frit_str *format = &bare->info.formats[i];

        if (format->len == sizeof(FRIT_FORMAT_HOST_FN) - 1 &&
            memcmp(format->ptr, FRIT_FORMAT_HOST_FN, format->len) == 0)
            return true;
    }
    return false;
}

static frit_status load(struct dispatching *at)
{
    struct bare *bare = at->bare;
    frit_host_fn fn = {.struct_size = sizeof(fn), .run = run_kernel, .ctx = &at->work};
    frit_status status = bare->backend->kernel_load(bare->device, FRIT_STR(FRIT_FORMAT_HOST_FN),
                                                    &fn, sizeof(fn), &at->kernel, &bare->err);

    memset(&fn, 0, sizeof(fn)); /* the bytes were copied */
    if (status)
        return bare_fail(bare, "kernel_load", status);
    return at->kernel ? FRIT_OK
                      : bare_fail_text(bare, "kernel_load gives no kernel, and no failure");
}

/* FRIT_UNSUPPORTED where the device takes no such kernels. */
static frit_status open_kernel(struct bare *bare, struct dispatching *at)
{
    frit_status status;

    memset(at, 0, sizeof(*at));
    at->bare = at->work.bare = bare;
    if (!lists_host_fn(bare)) {
        bare_fail_text(bare, "the device takes no kernels of the format " FRIT_FORMAT_HOST_FN);
        return FRIT_UNSUPPORTED;
    }
    bare->native = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_NATIVE_TABLE));
    if (!bare->native)
        return bare_fail_text(bare, "it takes " FRIT_FORMAT_HOST_FN " without " FRIT_NATIVE_TABLE);
    status = load(at);
    if (!status)
        status = bare_alloc(bare, BYTES, 0, &at->a);
    if (!status)
        status = bare_alloc(bare, BYTES, 0, &at->b);
    if (!status && !bare->native->get(bare->device, at->a.memory, FRIT_STR("host.ptr")))
        status = bare_fail_text(bare,
                                "it takes " FRIT_FORMAT_HOST_FN ", and its memory has no host.ptr");
    return status;
}

static void close_kernel(struct dispatching *at)
{
    struct bare *bare = at->bare;

    bare_free(bare, at->a.memory);
    bare_free(bare, at->b.memory);
    if (!bare->late && at->kernel)
        bare->backend->kernel_unload(bare->device, at->kernel);
}

static frit_arg arg_of(const frit_allocation *at, uint64_t flags)
{
    return (frit_arg){.memory = at->memory,
                      .extent = BYTES,
                      .dtype = FRIT_U32,
                      .rank = 1,
                      .align_log2 = 2,
                      .flags = flags,
                      .dims = {WORDS},
                      .strides = {1}};
}

/* A submit of one DISPATCH for each cookie, from A to B, in order. */
static frit_status dispatch(struct dispatching *at, const uint64_t *cookies, uint32_t n)
{
    enum { DISPATCHES = 4 };
    static const frit_launch_spec spec = {.struct_size = sizeof(spec)};
    struct bare *bare = at->bare;
    const frit_arg args[2] = {arg_of(&at->a, FRIT_ARG_READ), arg_of(&at->b, FRIT_ARG_WRITE)};
    frit_launch launches[DISPATCHES];
    frit_cmd cmds[2 * DISPATCHES];
    frit_status status;

    for (uint32_t i = 0; i < n; i++) {
        launches[i] = (frit_launch){.struct_size = sizeof(frit_launch),
                                    .n_args = 2,
                                    .arg_stride = sizeof(args[0]),
                                    .cookie = cookies[i],
                                    .spec = &spec,
                                    .args = args};
        cmds[2 * i] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                                 .kind = FRIT_CMD_DISPATCH,
                                 .launch = &launches[i],
                                 .kernel = at->kernel,
                                 .grid = {1, 1, 1},
                                 .group = {1, 1, 1}};
        cmds[2 * i + 1] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    }
    status = bare->backend->submit(bare->device, NULL, cmds, 2 * n - 1, sizeof(cmds[0]), NULL, 0,
                                   &at->value, &bare->err);
    if (status)
        return bare_fail(bare, "submit of kernels", status);
    bare_set_last(bare, at->value);
    memset(launches, 0xee, sizeof(launches)); /* borrowed for the call */
    memset(cmds, 0xee, sizeof(cmds));
    return FRIT_OK;
}

/* ---- what they compute ---- */

static frit_status host_fn(struct bare *bare)
{
    static uint32_t words[WORDS], got[WORDS];
    static struct dispatching d;
    const uint64_t cookie = 1;
    frit_status status = open_kernel(bare, &d);

    for (uint32_t round = 1; round <= 4 && !status; round++) {
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = 100 * round + i;
        status = bare_write(bare, d.a.memory, 0, words, BYTES);
        if (!status)
            status = dispatch(&d, &cookie, 1);
        if (!status)
            status = bare_read(bare, d.b.memory, 0, got, BYTES);
        if (!status && atomic_load(&d.work.calls) != round)
            status = bare_fail_text(bare, "%u DISPATCH commands called the kernel %u times", round,
                                    atomic_load(&d.work.calls));
        if (!status && atomic_load(&d.work.opaque))
            status = bare_fail_text(bare, "an argument has no host.ptr while the kernel runs");
        for (uint32_t i = 0; i < WORDS && !status; i++)
            if (got[i] != words[i] + 1)
                status = bare_fail_text(bare, "word %u of a kernel's result is %u, not %u", i,
                                        got[i], words[i] + 1);
    }
    close_kernel(&d);
    return status;
}

static frit_status formats(struct bare *bare)
{
    static const unsigned char bytes[16];
    frit_kernel *kernel = NULL;
    frit_status status;

    if (!FRIT_HAS(bare->backend, frit_backend, kernel_unload) || !bare->backend->kernel_load) {
        bare_fail_text(bare, "the driver takes no kernels");
        return FRIT_UNSUPPORTED;
    }
    if (!bare->backend->kernel_unload)
        return bare_fail_text(bare, "it has kernel_load and no kernel_unload");
    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status = bare->backend->kernel_load(bare->device, FRIT_STR("conform-nothing/1"), bytes,
                                        sizeof(bytes), &kernel, &bare->err);
    if (status != FRIT_UNSUPPORTED)
        return bare_fail_text(bare, "kernel_load of a format that nobody knows: %s",
                              frit_status_name(status));
    if (!bare->err.text[0])
        return bare_fail_text(bare, "kernel_load refuses a format without a word");
    bare->backend->kernel_unload(bare->device, NULL);
    return FRIT_OK;
}

/* ---- what fails ---- */

/* Waits with a place that is known; the failure after it. */
static frit_status next_failure(struct dispatching *at, uint64_t value, uint32_t command,
                                frit_failure *out)
{
    struct bare *bare = at->bare;
    frit_status status;

    *out = (frit_failure){.struct_size = sizeof(*out), .value = value, .command = command};
    bare->err = (frit_err){.struct_size = sizeof(bare->err)};
    status = bare->backend->wait(bare->device, NULL, at->value,
                                 (uint64_t)(bare->options->timeout / 2 * 1e9), out, &bare->err);
    bare->late = status == FRIT_TIMEOUT;
    if (bare->late)
        return bare_late(bare);
    return status ? bare_fail(bare, "wait for a value whose command failed", status) : FRIT_OK;
}

/* The failure of a kernel that had this cookie and was this command, or of all from it on. */
static frit_status expect_failure(struct dispatching *at, const frit_failure *got, uint64_t cookie,
                                  uint32_t command)
{
    struct bare *bare = at->bare;
    char text[64];

    snprintf(text, sizeof(text), "kernel %" PRIu64 " fails", cookie);
    if (!got->status)
        return bare_fail_text(bare, "wait reports nothing of a command that failed");
    if (got->status != FRIT_IO)
        return bare_fail_text(bare, "a command that failed with io is reported with %s",
                              frit_status_name(got->status));
    if (got->cookie != cookie)
        return bare_fail_text(bare, "the failure of cookie %" PRIu64 " is reported with %" PRIu64,
                              cookie, got->cookie);
    if (got->value != at->value)
        return bare_fail_text(bare, "the failure at %" PRIu64 " is reported at %" PRIu64, at->value,
                              got->value);
    if (got->command != command && got->command != FRIT_ALL_COMMANDS)
        return bare_fail_text(bare, "the failure of command %u is reported of command %u", command,
                              got->command);
    if (!strstr(bare->err.text, text))
        return bare_fail_text(bare, "the kernel's text '%s' is not passed on, but '%.200s'", text,
                              bare->err.text);
    return FRIT_OK;
}

static frit_status expect_none(struct dispatching *at, const frit_failure *got)
{
    return got->status ? bare_fail_text(at->bare,
                                        "wait reports %s of cookie %" PRIu64
                                        ", which the caller knows or which did not fail",
                                        frit_status_name(got->status), got->cookie)
                       : FRIT_OK;
}

/* One submit of four kernels, of which the second and the last fail. */
static frit_status fail_two(struct dispatching *at)
{
    static const uint64_t cookies[] = {5, FAILS + 1, 6, FAILS + 2};
    frit_failure got, again;
    frit_status status = dispatch(at, cookies, 4);
    uint64_t before = at->value - 1;

    if (!status)
        status = next_failure(at, before, FRIT_ALL_COMMANDS, &got);
    if (!status)
        status = expect_failure(at, &got, FAILS + 1, 3);
    if (!status)
        status = next_failure(at, before, FRIT_ALL_COMMANDS, &again);
    if (!status && memcmp(&got, &again, sizeof(got)) != 0)
        status = bare_fail_text(at->bare, "a failure is forgotten before the caller knows it");
    if (!status && got.command != FRIT_ALL_COMMANDS) {
        status = next_failure(at, got.value, got.command, &got);
        if (!status)
            status = expect_failure(at, &got, FAILS + 2, 7);
    }
    if (!status)
        status = next_failure(at, at->value, FRIT_ALL_COMMANDS, &got);
    return status ? status : expect_none(at, &got);
}

/* Kernels after the failure run, and nothing is reported of them. */
static frit_status go_on(struct dispatching *at)
{
    static const uint64_t fine[] = {8};
    uint32_t calls = atomic_load(&at->work.calls);
    uint64_t failed = at->value;
    frit_failure got;
    frit_status status = dispatch(at, fine, 1);

    if (!status)
        status = next_failure(at, failed, FRIT_ALL_COMMANDS, &got);
    if (!status)
        status = expect_none(at, &got);
    if (!status && atomic_load(&at->work.calls) != calls + 1)
        status = bare_fail_text(at->bare, "after a failure the next command does not run");
    return status;
}

static frit_status failures(struct bare *bare)
{
    static struct dispatching d;
    frit_status status = open_kernel(bare, &d);

    for (uint32_t round = 0; round < 3 && !status; round++) {
        status = fail_two(&d);
        if (!status)
            status = go_on(&d);
    }
    close_kernel(&d);
    return status;
}

/* ---- the checks ---- */

BARE_CHECK(formats, NULL)
BARE_CHECK(host_fn, NULL)
BARE_CHECK(failures, NULL)

const struct conform_check kernel_checks[] = {
    {"kernel", "formats", "a kernel of a format that nobody knows is refused", check_formats},
    {"kernel", "host-fn", "functions of the process run once, in order, on memory with addresses",
     check_host_fn},
    {"kernel", "failures", "wait reports each kernel that failed, by its cookie, and all goes on",
     check_failures},
    {0},
};
