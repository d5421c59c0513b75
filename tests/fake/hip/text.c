/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#include "emit/c/ctext.h"

#include "ptx.h"

/* libtcc has no builtins of gcc's: functions of the same meaning, see jit.c. */
static const char builtins[] =
    "void *memcpy(void *, const void *, unsigned long);\n"
    "float fmaf(float, float, float);\n"
    "double fma(double, double, double);\n"
    "unsigned add_32(void *, unsigned);\n"
    "unsigned long long add_64(void *, unsigned long long);\n"
    "int exchange_32(void *, void *, void *);\n"
    "unsigned long long clock_ns(void);\n"
    "#define ONE(name) float name##f(float); double name(double);\n"
    "ONE(sqrt) ONE(floor) ONE(ceil) ONE(trunc) ONE(rint) ONE(fabs)\n"
    "#define __builtin_memcpy memcpy\n"
    "#define __builtin_fmaf fmaf\n"
    "#define __builtin_fma fma\n"
    "#define __builtin_sqrtf sqrtf\n"
    "#define __builtin_sqrt sqrt\n"
    "#define __builtin_floorf floorf\n"
    "#define __builtin_floor floor\n"
    "#define __builtin_ceilf ceilf\n"
    "#define __builtin_ceil ceil\n"
    "#define __builtin_truncf truncf\n"
    "#define __builtin_trunc trunc\n"
    "#define __builtin_rintf rintf\n"
    "#define __builtin_rint rint\n"
    "#define __builtin_fabsf fabsf\n"
    "#define __builtin_fabs fabs\n"
    "#define __ATOMIC_RELAXED 0\n"
    "#define __atomic_load(at, to, order) memcpy(to, at, 4)\n"
    "#define __atomic_compare_exchange(at, old, new, weak, a, b) exchange_32(at, old, new)\n"
    "#define __atomic_fetch_add(at, r, order) \\\n"
    "    (sizeof *(at) == 4 ? add_32(at, r) : add_64(at, r))\n";

/* What a loader finds out about kernels. */
static const char checks[] = "#undef PARAMS\n"
                             "#undef KERNEL\n"
                             "#define PARAMS(n) const u32 " TEXT_PARAM_WORDS " = n;\n"
                             "#define KERNEL(name, threads) \\\n"
                             "    const u32 name##" TEXT_THREADS " = threads; \\\n"
                             "    void name(const u64 *params, const u32 *group, void *shared)\n";

/* For kernels as threads. */
static const char threads[] =
    "typedef unsigned long long u64;\n"
    "typedef unsigned int u32;\n"
    "unsigned " TEXT_DIMS "[6];\n"
    "static struct { unsigned x, y, z; } blockIdx, threadIdx;\n"
    "#define blockDim (*(struct { unsigned x, y, z; } *)" TEXT_DIMS ")\n"
    "#define gridDim (*(struct { unsigned x, y, z; } *)(" TEXT_DIMS " + 3))\n"
    "#define __global__\n"
    "#define __device__\n"
#ifdef FAKE_HIP
    "#define NOW() (clock_ns() / 10)\n"; /* 100 MHz */
#else
    "#define NOW() clock_ns()\n";
#endif

static void add_host_words(struct str *out)
{
    ctext_host_words(out);
    str_addf(out, "%s", checks);
}

/* ---- kernels as threads ---- */

static const char head[] = "extern \"C\" __global__ void ";

/* The C of the kernels themselves: `extern "C"` is C++. */
static void add_without_linkage(struct str *out, const char *text)
{
    static const char linkage[] = "extern \"C\" ";

    for (const char *at; (at = strstr(text, linkage)); text = at + strlen(linkage))
        str_add(out, text, (size_t)(at - text));
    str_addf(out, "%s", text);
}

/* A function that runs a block of the kernel whose head is at `text`. */
static void add_block(struct str *out, const char *text)
{
    char name[64], type[64];

    if (sscanf(text + strlen(head), "%63[a-z0-9_](const struct %63[a-z0-9_] ", name, type) != 2)
        return;
    str_addf(out,
             "void %s" TEXT_BLOCK "(const u64 *params, const u32 *group, void *shared)\n"
             "{\n"
             "    blockIdx.x = group[0], blockIdx.y = group[1], blockIdx.z = group[2];\n"
             "    for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)\n"
             "        for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)\n"
             "            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)\n"
             "                %s(*(const struct %s *)params);\n"
             "}\n"
             "const u32 %s_words = sizeof(struct %s) / 8;\n",
             name, name, type, name, type);
}

/* What precedes the first typedef is the definition of NOW for a device. */
static void add_threads(struct str *out, const char *text)
{
    const char *start = strstr(text, "typedef ");

    str_addf(out, "%s", threads);
    add_without_linkage(out, start ? start : text);
    for (const char *at = text; (at = strstr(at, head)); at++)
        add_block(out, at);
}

char *text_on_host(const char *text)
{
    const char *end = strstr(text, CTEXT_END_OF_WORDS);
    struct str out = {0};

    str_addf(&out, "%s", builtins);
    if (ptx_is(text)) {
        add_host_words(&out);
        out.failed |= !ptx_add(&out, text);
    } else if (!end && strstr(text, head)) {
        add_threads(&out, text);
    } else {
        add_host_words(&out);
        str_addf(&out, "%s", end ? end + strlen(CTEXT_END_OF_WORDS) : text);
    }
    if (out.failed) {
        str_fini(&out);
        return NULL;
    }
    return out.text;
}
