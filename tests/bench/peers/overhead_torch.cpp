/* SPDX-License-Identifier: Apache-2.0 */
/* The mix of `frit bench overhead` in PyTorch, eager, from C++: the same eight ops on the same two
 * shapes, a weight shared with another running thread, results kept for a round.  Prints the row as
 * `frit bench overhead --json` does.
 *
 *   overhead_torch [ROUNDS] */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

namespace
{

constexpr int shapes = 2, steps = 64, ops = 8, warm_rounds = 20;

/* The n-th of the CPUs that this thread may use, if there are as many. */
void pin(int n)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof allowed, &allowed) || n >= CPU_COUNT(&allowed))
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || n-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

struct mix {
    const at::Tensor *weight;
    at::Tensor x[shapes], row[shapes], kept[steps];

    explicit mix(const at::Tensor *weights) : weight(weights)
    {
        for (int s = 0; s < shapes; s++) {
            x[s] = at::rand({s ? 4 : 2, s ? 4 : 2});
            row[s] = at::rand({s ? 4 : 2});
        }
    }

    at::Tensor step(int s) const
    {
        at::Tensor a = at::add(x[s], weight[s]);
        at::Tensor b = at::mul(a, 0.5);
        a.reset();
        at::Tensor c = at::sub(b, x[s]);
        b.reset();
        at::Tensor d = at::add(c, row[s]);
        c.reset();
        at::Tensor e = d.permute({1, 0});
        d.reset();
        at::Tensor f = at::mul(e, x[s]);
        e.reset();
        at::Tensor g = at::add(f, 1.0);
        f.reset();
        return at::sum(g, {1});
    }

    void round()
    {
        for (int i = 0; i < steps; i++)
            kept[i] = step(i % shapes);
    }
};

struct runner {
    const at::Tensor *weights;
    int cpu;
    std::atomic<int> *ready;
    std::atomic<bool> *go, *stop;
    std::vector<double> *samples; /* null: runs until `stop` */

    void operator()() const
    {
        using clock = std::chrono::steady_clock;
        c10::InferenceMode guard;
        mix m(weights);

        pin(cpu);
        for (int i = 0; i < warm_rounds; i++)
            m.round();
        ready->fetch_add(1);
        while (!go->load())
            std::this_thread::yield();
        for (size_t i = 0; samples ? i < samples->size() : !stop->load(); i++) {
            auto start = clock::now();

            m.round();
            if (samples)
                (*samples)[i] =
                    std::chrono::duration<double, std::nano>(clock::now() - start).count();
        }
    }
};

/* Median ns per op of one thread, while `n_other` more run the same. */
double measure(const at::Tensor *weights, size_t rounds, int n_other)
{
    std::atomic<int> ready{0};
    std::atomic<bool> go{false}, stop{false};
    std::vector<double> samples(rounds);
    std::vector<std::thread> threads;

    for (int i = 0; i <= n_other; i++)
        threads.emplace_back(runner{weights, i, &ready, &go, &stop, i ? nullptr : &samples});
    while (ready.load() < n_other + 1)
        std::this_thread::yield();
    go.store(true);
    threads[0].join();
    stop.store(true);
    for (size_t i = 1; i < threads.size(); i++)
        threads[i].join();
    std::sort(samples.begin(), samples.end());
    return samples[rounds / 2] / (steps * ops);
}

} // namespace

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 400;

    if (rounds < 1)
        return 2;
    at::set_num_threads(1);
    c10::InferenceMode guard;
    const at::Tensor weights[shapes] = {at::rand({2, 2}), at::rand({4, 4})};
    double alone = measure(weights, static_cast<size_t>(rounds), 0);
    double shared = measure(weights, static_cast<size_t>(rounds), 1);

    std::printf("{\"suite\":\"overhead\",\"row\":\"mix\",\"case\":\"8 ops, 2x2 and 4x4, a weight "
                "shared with another running thread\",\"device\":\"torch-eager\",\"threads\":1,"
                "\"ops\":%d,\"streams\":1,\"ns_per_op\":%.6g,\"ns_per_op_alone\":%.6g}\n",
                ops, shared, alone);
}
