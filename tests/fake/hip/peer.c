/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that access each other's memory: HIP between devices, CUDA between contexts. */
#include "stream.h"

void peer_forget(gpu_context context)
{
    context->peers = 0;
    for (int i = 0; i < FAKE_MAX_DEVICES; i++)
        contexts[i].peers &= ~(1u << context->device);
}

static bool is_device(int device)
{
    return device >= 0 && device < FAKE_MAX_DEVICES && (uint32_t)device < fake_gpu.n_devices;
}

gpu_result fake_DeviceCanAccessPeer(int *can_access, int device, int peer)
{
    gpu_result result = call_begin("DeviceCanAccessPeer");

    if (result || !is_device(device) || !is_device(peer))
        return result ? result : FAKE_INVALID_DEVICE;
    *can_access = device != peer && !fake_gpu.has_no_peers;
    return GPU_SUCCESS;
}

static gpu_result enable(gpu_context context, int peer, unsigned flags)
{
    const uint32_t bit = 1u << peer;

    if (flags)
        return FAKE_INVALID_VALUE;
    if (context->device == peer || fake_gpu.has_no_peers)
        return FAKE_NO_PEER;
    if (context->peers & bit)
        return FAKE_PEER_ENABLED;
    context->peers |= bit;
    fake_gpu.enabled_peers++;
    return GPU_SUCCESS;
}

/* On a stream of the device that is current. */
static gpu_result copy(const char *name, const struct gpu_context_object *to, gpu_ptr to_address,
                       const struct gpu_context_object *from, gpu_ptr from_address, size_t bytes,
                       gpu_stream stream)
{
    gpu_result result = stream_begin(name, stream);

    if (result)
        return result;
    if (!memory_is_on(to->device, to_address, bytes) ||
        !memory_is_on(from->device, from_address, bytes))
        return FAKE_INVALID_VALUE;
    if (from->fatal)
        return from->fatal;
    fake_gpu.peer_copies++;
    if (to->device != from->device && !(to->peers & 1u << from->device))
        fake_gpu.staged_copies++;
    return operation_copy(stream, (void *)(uintptr_t)to_address,
                          (const void *)(uintptr_t)from_address, bytes);
}

#ifdef FAKE_HIP
gpu_result fake_DeviceEnablePeer(int peer, unsigned flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("DeviceEnablePeer", &context);

    if (result || !is_device(peer))
        return result ? result : FAKE_INVALID_DEVICE;
    return enable(context, peer, flags);
}

gpu_result fake_DeviceCopyPeer(gpu_ptr to_address, int to, gpu_ptr from_address, int from,
                               size_t bytes, gpu_stream stream)
{
    if (!is_device(to) || !is_device(from))
        return FAKE_INVALID_DEVICE;
    return copy("DeviceCopyPeer", &contexts[to], to_address, &contexts[from], from_address, bytes,
                stream);
}
#else
gpu_result fake_ContextEnablePeer(gpu_context peer, unsigned flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("ContextEnablePeer", &context);

    if (result || !peer)
        return result ? result : FAKE_INVALID_CONTEXT;
    return enable(context, peer->device, flags);
}

gpu_result fake_ContextCopyPeer(gpu_ptr to_address, gpu_context to, gpu_ptr from_address,
                                gpu_context from, size_t bytes, gpu_stream stream)
{
    if (!to || !from)
        return FAKE_INVALID_CONTEXT;
    return copy("ContextCopyPeer", to, to_address, from, from_address, bytes, stream);
}
#endif
