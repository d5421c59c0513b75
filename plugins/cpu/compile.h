/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling modules: kernel code for the interpreter, or machine code. */
#ifndef CPU_COMPILE_H
#define CPU_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/host.h>
#include <frit/status.h>

struct kir_module;
struct module_code;
struct object;

/* Slots of struct kernels_device; `self` is the instance. */
frit_status module_compile(void *self, struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **code, frit_err *err);
void module_release(void *self, void *code);
uint32_t module_generation(void *self, void *code);
/* In the place of a time: the launch is worth any compile. */
#define MODULE_BEST UINT64_MAX
/* Machine code for a launch that takes about `ns`, of which a long one waits for its compile; NULL:
 * interpret it. */
const struct object *module_object(struct module_code *code, uint64_t ns);
/* Whether what runs now will be replaced by better code if much time is spent in it; how much was.
 */
bool module_can_improve(const struct module_code *code);
void module_spend(struct module_code *code, uint64_t ns);

#endif
