/* SPDX-License-Identifier: Apache-2.0 */
/* A link between two network interfaces that delays every frame and loses some.
 *
 *   poor_link INTERFACE INTERFACE MILLISECONDS LOST-OF-1000 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { FRAME_BYTES = 65536 + 128, MAX_FRAMES = 4096 };

/* Those of a direction that are on their way, the oldest first. */
struct queue {
    struct frame {
        double due;
        ssize_t bytes;
        char *data;
    } frames[MAX_FRAMES];
    unsigned first, n;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* With the header that says what the sender left to the interface: checksums, and cutting. */
static int open_interface(const char *name)
{
    const int on = 1, port = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    const struct sockaddr_ll at = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex(name)};

    if (port < 0 || setsockopt(port, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) ||
        setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
        bind(port, (const struct sockaddr *)&at, sizeof at)) {
        perror(name);
        exit(1);
    }
    return port;
}

static void take(struct queue *queue, int port, double delay, unsigned lost)
{
    static char data[FRAME_BYTES];
    const ssize_t bytes = recv(port, data, sizeof data, MSG_DONTWAIT);
    struct frame *frame = &queue->frames[(queue->first + queue->n) % MAX_FRAMES];

    if (bytes <= 0 || queue->n == MAX_FRAMES || (unsigned)(rand() % 1000) < lost)
        return;
    *frame = (struct frame){now() + delay, bytes, malloc((size_t)bytes)};
    if (!frame->data)
        exit(1);
    memcpy(frame->data, data, (size_t)bytes);
    queue->n++;
}

static void send_due(struct queue *queue, int port, double time)
{
    while (queue->n && queue->frames[queue->first].due <= time) {
        struct frame *frame = &queue->frames[queue->first];

        (void)send(port, frame->data, (size_t)frame->bytes, 0);
        free(frame->data);
        queue->first = (queue->first + 1) % MAX_FRAMES;
        queue->n--;
    }
}

int main(int argc, char **argv)
{
    static struct queue queues[2];
    struct pollfd ports[2] = {{.events = POLLIN}, {.events = POLLIN}};
    double delay;

    if (argc != 5)
        return 2;
    for (int i = 0; i < 2; i++)
        ports[i].fd = open_interface(argv[1 + i]);
    delay = atof(argv[3]) / 1000;
    for (;;) {
        (void)poll(ports, 2, queues[0].n || queues[1].n ? 1 : -1);
        for (int i = 0; i < 2; i++) {
            if (ports[i].revents & POLLIN)
                take(&queues[i], ports[i].fd, delay, (unsigned)atoi(argv[4]));
            send_due(&queues[i], ports[!i].fd, now());
        }
    }
}
