/* SPDX-License-Identifier: Apache-2.0 */
/* A fatal error of LLVM ends a compile and LLVM, not the process. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit/llvm/open.h"
#include "kernels/emit/llvm/rig.h"
#include "unit.h"

static void *library;

/* In the place of the step that makes code: LLVM's own function for what it cannot go on after. */
static int die(ll_machine machine, ll_module module, int file, char **text, ll_buffer *out)
{
    void (*report)(const char *reason, bool crash);

    (void)machine, (void)module, (void)file, (void)text, (void)out;
    *(void **)&report = dlsym(library, "_ZN4llvm18report_fatal_errorEPKcb");
    assert_non_null(report);
    report("a planted defect", true);
    return 1;
}

static int lack(ll_machine machine, ll_module module, int file, char **text, ll_buffer *out)
{
    void (*report)(const char *reason, bool crash);

    (void)machine, (void)module, (void)file, (void)text, (void)out;
    *(void **)&report = dlsym(library, "_ZN4llvm22report_bad_alloc_errorEPKcb");
    assert_non_null(report);
    report("planted: no memory", true);
    return 1;
}

static frit_status compile(const struct rig *rig, frit_err *err)
{
    struct kir_module m;
    frit_status status;
    void *bytes;
    size_t n;

    kir_init(&m, "small");
    kir_arg(&m, FRIT_F32, KIR_WRITE);
    kir_phase(&m, 8);
    kir_emit_imm(&m, KIR_store, 0, kir_emit(&m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE),
                 kir_const_f(&m, KIR_F32, 1), KIR_NONE);
    status = llvm_compile(rig->llvm, &m, &rig->best, LLVM_QUICK, &bytes, &n, err);
    free(bytes);
    kir_fini(&m);
    return status;
}

/* In a process of its own, since LLVM stays off. */
static void expect_off(const struct rig *rig, void *how, const char *reason)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct llvm *other;
    int (*real)(ll_machine, ll_module, int, char **, ll_buffer *) =
        rig->llvm->api.TargetMachineEmitToMemoryBuffer;
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        library = rig->llvm->library;
        if (compile(rig, &err))
            _exit(2);
        *(void **)&rig->llvm->api.TargetMachineEmitToMemoryBuffer = how;
        if (compile(rig, &err) != FRIT_UNSUPPORTED || !strstr(err.text, reason))
            _exit(3);
        rig->llvm->api.TargetMachineEmitToMemoryBuffer = real;
        if (compile(rig, &err) != FRIT_UNSUPPORTED || !strstr(err.text, "not used any more"))
            _exit(4);
        if (!llvm_is_off(&err) || llvm_open(NULL, &other, &err) != FRIT_UNSUPPORTED ||
            !strstr(err.text, reason))
            _exit(5);
        exit(0); /* with the destructors of LLVM */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_defect_ends_the_compile(void **state)
{
    expect_off(rig_of(state), (void *)(uintptr_t)die, "a planted defect");
}

static void so_does_a_lack_of_memory(void **state)
{
    expect_off(rig_of(state), (void *)(uintptr_t)lack, "planted: no memory");
}

/* Where LLVM's own allocations would fail, which end the process, it is not started. */
static void without_space_nothing_is_compiled(void **state)
{
    const struct rig *rig = rig_of(state);
    frit_err err = {.struct_size = sizeof(err)};
    struct rlimit before, less;

    assert_int_equal(compile(rig, &err), FRIT_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = (struct rlimit){(rlim_t)1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    assert_int_equal(compile(rig, &err), FRIT_NO_HOST_MEMORY);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_non_null(strstr(err.text, "LLVM is not started"));
    assert_false(llvm_is_off(&err));
    assert_int_equal(compile(rig, &err), FRIT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_defect_ends_the_compile),
        cmocka_unit_test(so_does_a_lack_of_memory),
        cmocka_unit_test(without_space_nothing_is_compiled),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
