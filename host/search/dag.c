/* SPDX-License-Identifier: Apache-2.0 */
#include "search/dag.h"

bool dag_can_join(const struct dag *dag, uint32_t block, uint64_t needs)
{
    for (uint64_t rest = needs & ~dag_bit(block); rest; rest &= rest - 1) {
        if (dag->before[dag_first(rest)] & dag_bit(block))
            return false;
    }
    return true;
}

void dag_order(struct dag *dag, uint32_t block, uint64_t needs)
{
    uint64_t all = needs & ~dag_bit(block);

    for (uint64_t rest = all; rest; rest &= rest - 1)
        all |= dag->before[dag_first(rest)];
    if (!(all & ~dag->before[block]))
        return;
    dag->before[block] |= all;
    for (uint64_t rest = dag->live; rest; rest &= rest - 1) {
        uint32_t other = dag_first(rest);

        if (dag->before[other] & dag_bit(block))
            dag->before[other] |= dag->before[block];
    }
}

bool dag_can_merge(const struct dag *dag, uint32_t a, uint32_t b)
{
    uint64_t both = dag_bit(a) | dag_bit(b);
    uint64_t before = (dag->before[a] | dag->before[b]) & ~both;

    for (; before; before &= before - 1) {
        if (dag->before[dag_first(before)] & both)
            return false;
    }
    return true;
}

void dag_merge(struct dag *dag, uint32_t a, uint32_t b)
{
    uint64_t both = dag_bit(a) | dag_bit(b);

    dag->before[a] = (dag->before[a] | dag->before[b]) & ~both;
    dag->before[b] = 0;
    dag->live &= ~dag_bit(b);
    for (uint64_t rest = dag->live; rest; rest &= rest - 1) {
        uint32_t other = dag_first(rest);

        if (dag->before[other] & both)
            dag->before[other] = (dag->before[other] & ~dag_bit(b)) | dag_bit(a) | dag->before[a];
    }
}
