/* SPDX-License-Identifier: Apache-2.0 */
/* What needs several GPUs: gpus [bits|kill|speed|overlap]...   Without names: all of them.
 *
 * GPUS_PLUGIN  file of the engine
 * GPUS_NCCL    file of NCCL; empty: libnccl.so.2
 * GPUS_CUDA    file of CUDA's driver library; empty: libcuda.so.1
 * GPUS_RANKS   how many devices; empty: all, 8 at most
 * GPUS_KILLS   how often a rank is killed in each group; empty: 4 times
 * GPUS_SCALE   divides numbers of elements, for fakes
 * GPUS_TIMELINE  file for a timeline of the last pass of `overlap`
 * GPUS_VERBOSE   what the engine logs */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "scenarios.h"

enum { COUNTED = 100 }; /* exit code of a process that counted none */

/* In a process of its own: this one is forked from later. */
static uint32_t count_devices(void)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit((int)(COUNTED + (device_count() < MAX_RANKS ? device_count() : MAX_RANKS)));
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
                   WEXITSTATUS(status) >= COUNTED
               ? (uint32_t)WEXITSTATUS(status) - COUNTED
               : 0;
}

static bool is_wanted(int argc, char **argv, const char *name)
{
    bool is = argc == 1;

    for (int i = 1; i < argc; i++)
        is |= strcmp(argv[i], name) == 0;
    return is;
}

int main(int argc, char **argv)
{
    const uint32_t there = count_devices(), n = number("GPUS_RANKS", there);

    if (there < 2 || n < 2 || n > there) {
        fprintf(stderr, "gpus: there are %u devices; at least 2 are needed\n", there);
        return 77;
    }
    if (is_wanted(argc, argv, "bits"))
        bits_run(n);
    if (is_wanted(argc, argv, "kill"))
        kill_run(n, number("GPUS_KILLS", 4));
    if (is_wanted(argc, argv, "speed"))
        speed_run(n);
    if (is_wanted(argc, argv, "overlap"))
        overlap_run(n);
    return all_was_right() ? 0 : 1;
}
