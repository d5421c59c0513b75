/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of an implementation of MPI, whose file defines before it includes this one:
 *   handle              the type of its handles
 *   HANDLE              the member of union mpi_handle that is one
 *   ANY_SOURCE          a number
 *   STATUS_IGNORE       an address */
#ifndef MPI_CALLS_H
#define MPI_CALLS_H

#include <stdio.h>

enum { THREAD_MULTIPLE = 3, ERROR_BYTES = 512 };

#define CALL(mpi, name, ...) ((int (*)(__VA_ARGS__))(mpi)->functions[MPI_##name])

static int call_send(struct mpi *mpi, const void *from, int bytes, int to, int tag,
                     union mpi_handle *request)
{
    return CALL(mpi, Isend, const void *, int, handle, int, int, handle, handle *)(
        from, bytes, mpi->byte.HANDLE, to, tag, mpi->comm.HANDLE, &request->HANDLE);
}

static int call_receive(struct mpi *mpi, void *into, int bytes, int from, int tag,
                        union mpi_handle *request)
{
    return CALL(mpi, Irecv, void *, int, handle, int, int, handle, handle *)(
        into, bytes, mpi->byte.HANDLE, from, tag, mpi->comm.HANDLE, &request->HANDLE);
}

static int call_receive_from_any(struct mpi *mpi, void *into, int bytes, int tag,
                                 union mpi_handle *request)
{
    return call_receive(mpi, into, bytes, ANY_SOURCE, tag, request);
}

static int call_test(struct mpi *mpi, union mpi_handle *requests, int n, bool *done)
{
    int result = 0, flag = 1;

    for (int i = 0; i < n && flag && !result; i++)
        result =
            CALL(mpi, Test, handle *, int *, void *)(&requests[i].HANDLE, &flag, STATUS_IGNORE);
    *done = flag && !result;
    return result;
}

static void call_cancel(struct mpi *mpi, union mpi_handle *request)
{
    if (request->HANDLE != mpi->no_request.HANDLE)
        (void)CALL(mpi, Cancel, handle *)(&request->HANDLE);
}

static int start_threads(struct mpi *mpi, int *level)
{
    int is_there = 0, result = CALL(mpi, Initialized, int *)(&is_there);

    if (result)
        return result;
    return is_there ? CALL(mpi, Query_thread, int *)(level)
                    : CALL(mpi, Init_thread, int *, char ***, int, int *)(NULL, NULL,
                                                                          THREAD_MULTIPLE, level);
}

static bool call_start(struct mpi *mpi, int *rank, int *size, char *why, size_t why_bytes)
{
    int level = 0, length, result = start_threads(mpi, &level);
    char text[ERROR_BYTES];

    if (!result && level < THREAD_MULTIPLE) {
        snprintf(why, why_bytes, "MPI was started without MPI_THREAD_MULTIPLE");
        return false;
    }
    if (!result)
        result = CALL(mpi, Comm_dup, handle, handle *)(mpi->world.HANDLE, &mpi->comm.HANDLE);
    if (!result)
        result = CALL(mpi, Comm_set_errhandler, handle, handle)(mpi->comm.HANDLE,
                                                                mpi->errors_return.HANDLE);
    if (!result)
        result = CALL(mpi, Comm_rank, handle, int *)(mpi->comm.HANDLE, rank);
    if (!result)
        result = CALL(mpi, Comm_size, handle, int *)(mpi->comm.HANDLE, size);
    if (result) {
        if (CALL(mpi, Error_string, int, char *, int *)(result, text, &length))
            text[0] = '\0';
        snprintf(why, why_bytes, "MPI does not start: %s", text);
    }
    return !result;
}

static void call_finish(struct mpi *mpi)
{
    (void)CALL(mpi, Finalize, void)();
}

#define MPI_CALLS                                                                           \
    .start = call_start, .finish = call_finish, .send = call_send, .receive = call_receive, \
    .receive_from_any = call_receive_from_any, .test = call_test, .cancel = call_cancel

#endif
