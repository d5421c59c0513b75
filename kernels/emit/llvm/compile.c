/* SPDX-License-Identifier: Apache-2.0 */
/* A module through LLVM: every compile has a context and a target machine for itself.  No pass over
 * its IR is run: what is emitted is what the code generator gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#include "emit/llvm/elf.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/fatal.h"
#include "emit/llvm/open.h"
#include "emit/llvm/phase.h"

static const char triple[] = "x86_64-unknown-linux-gnu";
static const char *const cpus[LLVM_ISAS] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

struct job {
    struct ll l;
    _Atomic(ll_machine) *idle;
    ll_machine machine;
    struct blob_phase *phases; /* but for their entries */
};

static void make_types(struct ll *l)
{
    const struct ll_api *api = l->api;
    struct ll_types *t = &l->types;

    t->i8 = api->IntTypeInContext(l->context, 8);
    t->i16 = api->IntTypeInContext(l->context, 16);
    t->i64 = api->IntTypeInContext(l->context, 64);
    t->ptr = api->PointerTypeInContext(l->context, 0);
    t->half = api->HalfTypeInContext(l->context);
    t->of[KIR_B] = api->IntTypeInContext(l->context, 1);
    t->of[KIR_I32] = api->IntTypeInContext(l->context, 32);
    t->of[KIR_I64] = t->i64;
    t->of[KIR_F32] = api->FloatTypeInContext(l->context);
    t->of[KIR_F64] = api->DoubleTypeInContext(l->context);
}

/* Fails with LLVM's message `text`, which is disposed of. */
static frit_status fail_llvm(const struct ll *l, char *text, frit_err *err)
{
    frit_status status =
        fail(err, FRIT_UNSUPPORTED, "LLVM: kernel %s: %s", l->module->name, text ? text : "?");

    if (text)
        l->api->DisposeMessage(text);
    return status;
}

static frit_status open_machine(struct job *job, enum llvm_level level, frit_err *err)
{
    struct ll *l = &job->l;
    ll_target target = NULL;
    ll_layout layout;
    char *text = NULL;

    job->machine = atomic_exchange(job->idle, NULL);
    if (!job->machine && l->api->GetTargetFromTriple(triple, &target, &text))
        return fail_llvm(l, text, err);
    if (!job->machine)
        job->machine = l->api->CreateTargetMachine(target, triple, cpus[l->cpu.isa], "", (int)level,
                                                   LL_RELOC_PIC, LL_MODEL_SMALL);
    if (!job->machine)
        return fail_llvm(l, NULL, err);
    l->api->SetTarget(l->code, triple);
    layout = l->api->CreateTargetDataLayout(job->machine);
    l->api->SetModuleDataLayout(l->code, layout);
    l->api->DisposeTargetData(layout);
    return FRIT_OK;
}

static frit_status emit_phases(struct job *job, frit_err *err)
{
    for (uint32_t i = 0; i < job->l.module->n_phases; i++) {
        char name[16];

        snprintf(name, sizeof(name), "p%u", i);
        TRY(ll_phase(&job->l, i, name, err));
        job->phases[i] =
            (struct blob_phase){.scratch = job->l.scratch_bytes, .deferred = job->l.deferred.at};
    }
    if (job->l.lacks)
        return fail(err, FRIT_UNSUPPORTED, "kernel %s: %s has no %s", job->l.module->name,
                    cpus[job->l.cpu.isa], job->l.lacks);
    return FRIT_OK;
}

static frit_status make_code(struct job *job, void **out, size_t *out_bytes, frit_err *err)
{
    struct ll *l = &job->l;
    ll_buffer buffer = NULL;
    char *text = NULL;
    frit_status status;

    if (l->api->VerifyModule(l->code, LL_RETURN_STATUS, &text))
        return fail_llvm(l, text, err);
    l->api->DisposeMessage(text);
    text = NULL;
    if (l->api->TargetMachineEmitToMemoryBuffer(job->machine, l->code, LL_OBJECT_FILE, &text,
                                                &buffer))
        return fail_llvm(l, text, err);
    status = elf_link(l->api->GetBufferStart(buffer), l->api->GetBufferSize(buffer), job->phases,
                      l->module->n_phases, out, out_bytes, err);
    l->api->DisposeMemoryBuffer(buffer);
    return status;
}

static frit_status run_job(struct job *job, enum llvm_level level, void **out, size_t *out_bytes,
                           frit_err *err)
{
    make_types(&job->l);
    TRY(open_machine(job, level, err));
    TRY(emit_phases(job, err));
    return make_code(job, out, out_bytes, err);
}

struct compile {
    struct llvm *llvm;
    const struct kir_module *module;
    const struct llvm_cpu *cpu;
    enum llvm_level level;
    void *out;
    size_t out_bytes;
};

/* On the thread of the compile. */
static frit_status compile(void *ctx, frit_err *err)
{
    struct compile *c = ctx;
    const struct ll_api *api = &c->llvm->api;
    struct job job = {.l = {.api = api, .cpu = *c->cpu, .module = c->module},
                      .idle = &c->llvm->idle[c->cpu->isa][c->level]};
    frit_status status;

    job.phases = calloc(c->module->n_phases, sizeof(*job.phases));
    if (!job.phases)
        return fail_memory(err, c->module->n_phases * sizeof(*job.phases));
    job.l.context = api->ContextCreate();
    job.l.code = api->ModuleCreateWithNameInContext(c->module->name, job.l.context);
    job.l.builder = api->CreateBuilderInContext(job.l.context);
    status = run_job(&job, c->level, &c->out, &c->out_bytes, err);
    api->DisposeBuilder(job.l.builder);
    api->DisposeModule(job.l.code);
    job.machine = atomic_exchange(job.idle, job.machine);
    if (job.machine)
        api->DisposeTargetMachine(job.machine);
    api->ContextDispose(job.l.context);
    free(job.phases);
    return status;
}

frit_status llvm_compile(struct llvm *llvm, const struct kir_module *module,
                         const struct llvm_cpu *cpu, enum llvm_level level, void **out,
                         size_t *out_bytes, frit_err *err)
{
    struct compile c = {.llvm = llvm, .module = module, .cpu = cpu, .level = level};
    frit_status status;

    *out = NULL;
    *out_bytes = 0;
    TRY(kir_refuse_fragments(module, err));
    TRY(fatal_check(err));
    status = fatal_run(compile, &c, err);
    if (!status) {
        *out = c.out;
        *out_bytes = c.out_bytes;
    }
    return status;
}
