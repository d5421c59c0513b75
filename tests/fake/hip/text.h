/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of kernels as C for the host. */
#ifndef FAKE_HIP_TEXT_H
#define FAKE_HIP_TEXT_H

/* Names in the C text of what a loader wants to know, beside the functions
 *
 *    void NAME(const u64 *params, const u32 *group, void *shared)
 *
 * of blocks.  All but the functions may be missing. */
#define TEXT_PARAM_WORDS "param_words" /* u32: words of a kernel's parameters */
#define TEXT_THREADS     "_threads"    /* after a kernel's name: u32, threads of its block */
#define TEXT_DIMS        "launch_dims" /* u32[6]: to be set to the extents of block and grid */
#define TEXT_BLOCK       "_block" /* after the name of a kernel that was written for a thread */

/* The C text of one of these, which the caller frees; NULL: there is no memory, or PTX with
 * something that is not known.
 *
 *   PTX (ptx.h)
 *   a text of kernels/emit/c: its words are replaced by those of the host
 *   CUDA C of kernels without barriers and shared memory, each with one struct as parameter: a
 *       function that runs the threads one after the other is added to each
 *   else it is C already, and can use the host's words */
char *text_on_host(const char *text);

#endif
