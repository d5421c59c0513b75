/* SPDX-License-Identifier: Apache-2.0 */
/* Passes frames from one network interface to another, late, and not all of them.
 *
 *   job_lossy INTERFACE INTERFACE DELAY_MS LOST_PER_MILLE
 *
 * Frames are taken and given with the header by which the system says what of their checksums is
 * still to be computed. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 70000, WAITING = 1024 };

struct frame {
    uint64_t due_ms;
    size_t n;
    char *bytes;
};

struct side {
    int fd;
    uint64_t first, next; /* of the frames that came from here, modulo WAITING */
    struct frame frames[WAITING];
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int open_side(struct side *side, const char *name)
{
    const int yes = 1;
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(ETH_P_ALL),
                                  .sll_ifindex = (int)if_nametoindex(name)};
    const struct packet_mreq all = {.mr_ifindex = address.sll_ifindex,
                                    .mr_type = PACKET_MR_PROMISC};

    side->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    return side->fd < 0 || !address.sll_ifindex ||
           setsockopt(side->fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)) ||
           setsockopt(side->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) ||
           setsockopt(side->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) ||
           bind(side->fd, (struct sockaddr *)&address, sizeof(address));
}

static void take(struct side *side, uint64_t delay_ms, int per_mille)
{
    static char bytes[FRAME];
    const ssize_t n = recv(side->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    struct frame *frame = &side->frames[side->next % WAITING];

    if (n <= 0 || rand() % 1000 < per_mille || side->next - side->first == WAITING)
        return;
    *frame = (struct frame){now_ms() + delay_ms, (size_t)n, malloc((size_t)n)};
    if (!frame->bytes)
        return;
    memcpy(frame->bytes, bytes, (size_t)n);
    side->next++;
}

/* Milliseconds until the next one is due. */
static int give(struct side *side, int to)
{
    while (side->first < side->next) {
        struct frame *frame = &side->frames[side->first % WAITING];
        const uint64_t now = now_ms();

        if (frame->due_ms > now)
            return (int)(frame->due_ms - now);
        if (send(to, frame->bytes, frame->n, 0) < 0 && errno != ENOBUFS && errno != ENETDOWN)
            perror("job_lossy");
        free(frame->bytes);
        side->first++;
    }
    return 1000;
}

int main(int argc, char **argv)
{
    static struct side sides[2];

    if (argc != 5)
        return 2;
    if (open_side(&sides[0], argv[1]) || open_side(&sides[1], argv[2])) {
        perror("job_lossy");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        const int a = give(&sides[0], sides[1].fd), b = give(&sides[1], sides[0].fd);
        struct pollfd polled[2] = {{.fd = sides[0].fd, .events = POLLIN},
                                   {.fd = sides[1].fd, .events = POLLIN}};

        (void)poll(polled, 2, a < b ? a : b);
        for (int i = 0; i < 2; i++) {
            if (polled[i].revents)
                take(&sides[i], (uint64_t)atoi(argv[3]), atoi(argv[4]));
        }
    }
}
