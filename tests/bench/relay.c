/* SPDX-License-Identifier: Apache-2.0 */
/* A yardstick: appends with backups, and of all that they take only the copying. What shared memory can
 * be worth against TCP on this machine, whatever a broker does besides.
 *
 *   leat-relay shm|rpc WINDOW SECONDS [COPIES]
 *
 * A client sends batches of 10 KB over loopback TCP, WINDOW of them under way, to an owner. The owner
 * copies what came into its ring, and
 *   shm: copies it into the rings of COPIES backups itself, one after the other;
 *   rpc: sends it to each backup over TCP, which receives it in place and answers how far it has come;
 * then it tells the client how many batches all of them have. Client, owner and backups are processes.
 * There are no records, no checksums, no zeroing, no files. Prints
 *   {"how":…,"window":…,"copies":…,"records_per_second":…,"cpu_ns":…,"client_cpu_ns":…}
 * where a record is 100 bytes, cpu_ns the CPU time of all processes for one, client_cpu_ns the client's
 * part of it.
 */
#include "yardstick.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH_BYTES = 10240,
    BATCH_RECORDS = 100,
    RING_BYTES = 64 << 20, /* no cache holds it, as none holds a broker's segments */
    READ_BYTES = 256 << 10,
    WINDOW_MAX = 1000, /* what is under way is far from filling a ring */
    COPIES_MAX = 8,
    ANSWERS_MAX = 64, /* read at once; the last one counts */
};
static const double WARMUP_SECONDS = 0.3;

struct pair {
    int near, far; /* the two ends of a connection; near is the one that sends batches */
};

struct relay {
    bool rpc;
    unsigned window, copies;
    double seconds;
    char *rings[1 + COPIES_MAX]; /* the owner's, then the backups' */
    struct pair client, backups[COPIES_MAX];
};

static double cpu_seconds(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* ---- connections ---- */

/* Loopback connections of Leat use Reno; a control that paces by timers would measure the timers. */
static int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4)) fail("socket");
    return fd;
}

static void prepare(int fd)
{
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        fcntl(fd, F_SETFL, O_NONBLOCK))
        fail("connection");
}

static struct pair connect_pair(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = open_socket();
    if (bind(listener, (struct sockaddr *)&address, bytes) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &bytes))
        fail("listen");
    struct pair pair = {.near = open_socket()};
    if (connect(pair.near, (struct sockaddr *)&address, sizeof address)) fail("connect");
    pair.far = accept(listener, NULL, NULL);
    if (pair.far < 0) fail("accept");
    close(listener);
    prepare(pair.near);
    prepare(pair.far);
    return pair;
}

static void watch(int poller, int fd, unsigned name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
}

/* As much as there is, `room` at most; 0: nothing now. Whoever has no peer any more leaves. */
static size_t receive(int fd, void *to, size_t room, int code_at_end)
{
    ssize_t got = recv(fd, to, room, 0);
    if (got == 0) exit(code_at_end);
    if (got < 0 && errno != EAGAIN && errno != EINTR) fail("recv");
    return got < 0 ? 0 : (size_t)got;
}

/* An answer is a count of all that has come; each is sent whole, so they are read whole. */
static void send_count(int fd, uint64_t count)
{
    if (send(fd, &count, sizeof count, MSG_NOSIGNAL) != sizeof count) fail("send");
}

static void receive_count(int fd, uint64_t *count)
{
    uint64_t answers[ANSWERS_MAX];
    size_t got = receive(fd, answers, sizeof answers, 1);
    if (got > 0) *count = answers[got / sizeof *answers - 1];
}

static size_t send_some(int fd, const char *from, size_t bytes)
{
    ssize_t put = send(fd, from, bytes, MSG_NOSIGNAL);
    if (put < 0 && errno != EAGAIN && errno != EINTR) fail("send");
    return put < 0 ? 0 : (size_t)put;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- a backup ---- */

static void run_backup(int fd, char *ring)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll_create1");
    watch(poller, fd, 0);
    for (uint64_t at = 0, told = 0;;) {
        struct epoll_event event;
        epoll_wait(poller, &event, 1, -1);
        for (size_t room = 0, got = 0; got == room; at += got) {
            room = least(RING_BYTES - at % RING_BYTES, READ_BYTES);
            got = receive(fd, ring + at % RING_BYTES, room, 0);
        }
        if (at > told) send_count(fd, at);
        told = at;
    }
}

/* ---- the owner ---- */

struct owner {
    const struct relay *relay;
    uint64_t at; /* bytes that have come */
    uint64_t sent[COPIES_MAX], kept[COPIES_MAX];
    uint64_t told; /* batches */
    char read[READ_BYTES];
};

static void owner_read(struct owner *o)
{
    const struct relay *r = o->relay;
    for (size_t room = 0, got = 0; got == room; o->at += got) {
        size_t offset = o->at % RING_BYTES;
        room = least(RING_BYTES - offset, READ_BYTES);
        got = receive(r->client.far, o->read, room, 0);
        memcpy(r->rings[0] + offset, o->read, got);
        for (unsigned i = 0; !r->rpc && i < r->copies; i++)
            memcpy(r->rings[1 + i] + offset, r->rings[0] + offset, got);
    }
}

/* What has come and was not sent yet. Where a socket is full its backup has something to read, and
 * the answer to that brings us here again. */
static void owner_send(struct owner *o, unsigned i)
{
    const struct relay *r = o->relay;
    while (o->sent[i] < o->at) {
        size_t offset = o->sent[i] % RING_BYTES;
        size_t bytes = least(o->at - o->sent[i], RING_BYTES - offset);
        size_t put = send_some(r->backups[i].near, r->rings[0] + offset, bytes);
        o->sent[i] += put;
        if (put < bytes) return;
    }
}

static void run_owner(const struct relay *r)
{
    static struct owner o;
    o.relay = r;
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll_create1");
    watch(poller, r->client.far, COPIES_MAX);
    for (unsigned i = 0; i < r->copies; i++)
        watch(poller, r->backups[i].near, i);
    for (;;) {
        struct epoll_event events[1 + COPIES_MAX];
        int count = epoll_wait(poller, events, 1 + COPIES_MAX, -1);
        for (int e = 0; e < count; e++) {
            unsigned name = events[e].data.u32;
            if (name == COPIES_MAX)
                owner_read(&o);
            else
                receive_count(r->backups[name].near, &o.kept[name]);
        }
        uint64_t done = o.at;
        for (unsigned i = 0; r->rpc && i < r->copies; i++) {
            owner_send(&o, i);
            if (o.kept[i] < done) done = o.kept[i];
        }
        if (done / BATCH_BYTES == o.told) continue;
        o.told = done / BATCH_BYTES;
        send_count(r->client.far, o.told);
    }
}

/* ---- the client ---- */

struct outcome {
    double seconds; /* after the first ones, whose pages and windows are new */
    uint64_t batches;
    uint64_t batches_all; /* with the first and the last ones */
};

/* What was sent is acked in the end, so nobody is left with half of something. */
static struct outcome run_client(const struct relay *r)
{
    static char source[WINDOW_MAX * BATCH_BYTES];
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (char)(i * 131 >> 8);
    double begin = now(), warm = 0;
    uint64_t sent = 0, acked = 0, acked_warm = 0;
    struct outcome outcome = {0};
    for (bool over = false; !over || acked * BATCH_BYTES < sent;) {
        double t = now();
        if (warm == 0 && t - begin > WARMUP_SECONDS) {
            warm = t;
            acked_warm = acked;
        }
        if (!over && warm > 0 && t - warm > r->seconds) {
            over = true;
            outcome = (struct outcome){.seconds = t - warm, .batches = acked - acked_warm};
        }
        uint64_t limit = (acked + r->window) * BATCH_BYTES;
        if (over) limit = (sent + BATCH_BYTES - 1) / BATCH_BYTES * BATCH_BYTES;
        size_t bytes = limit > sent ? limit - sent : 0, put = 0;
        if (bytes > 0) put = send_some(r->client.near, source, bytes);
        sent += put;
        if (put == 0 && acked * BATCH_BYTES < sent)
            poll(&(struct pollfd){r->client.near, bytes > 0 ? POLLIN | POLLOUT : POLLIN, 0}, 1, -1);
        receive_count(r->client.near, &acked);
    }
    outcome.batches_all = acked;
    return outcome;
}

/* ---- the processes ---- */

/* True in the child, which does not outlive its parent. */
static bool start(void)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0) fail("fork");
    if (child > 0) return false;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) fail("prctl");
    if (getppid() != parent) exit(1); /* it ended before it was asked for */
    return true;
}

static void start_all(const struct relay *r)
{
    for (unsigned i = 0; i < r->copies; i++) {
        if (!start()) continue;
        close(r->client.near);
        close(r->client.far);
        for (unsigned k = 0; k < r->copies; k++) {
            close(r->backups[k].near);
            if (k != i) close(r->backups[k].far);
        }
        run_backup(r->backups[i].far, r->rings[1 + i]);
    }
    for (unsigned i = 0; i < r->copies; i++)
        close(r->backups[i].far);
    if (start()) {
        close(r->client.near);
        run_owner(r);
    }
    close(r->client.far);
    for (unsigned i = 0; i < r->copies; i++)
        close(r->backups[i].near);
}

/* The client's end is closed: the owner leaves, then the backups do. */
static void await_all(const struct relay *r)
{
    for (unsigned i = 0; i < 1 + r->copies; i++) {
        int status;
        if (wait(&status) < 0) fail("wait");
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        fprintf(stderr, "leat-relay: a process failed: status %#x\n", status);
        exit(1);
    }
    for (unsigned i = 0; i < r->copies; i++) {
        if (memcmp(r->rings[0], r->rings[1 + i], RING_BYTES) == 0) continue;
        fprintf(stderr, "leat-relay: backup %u has something else than the owner\n", i);
        exit(1);
    }
}

static bool parse(struct relay *r, int argc, char **argv)
{
    if (argc < 4 || argc > 5) return false;
    char *window_end, *seconds_end, *copies_end;
    r->rpc = strcmp(argv[1], "rpc") == 0;
    if (!r->rpc && strcmp(argv[1], "shm") != 0) return false;
    unsigned long window = strtoul(argv[2], &window_end, 10);
    unsigned long copies = strtoul(argc == 5 ? argv[4] : "3", &copies_end, 10);
    r->seconds = strtod(argv[3], &seconds_end);
    if (*window_end || *seconds_end || *copies_end) return false;
    r->window = (unsigned)window;
    r->copies = (unsigned)copies;
    return window >= 1 && window <= WINDOW_MAX && copies >= 1 && copies <= COPIES_MAX &&
           r->seconds > 0 && r->seconds <= 3600;
}

int main(int argc, char **argv)
{
    static struct relay r;
    if (!parse(&r, argc, argv)) {
        fprintf(stderr,
                "usage: leat-relay shm|rpc WINDOW SECONDS [COPIES]\n"
                "  WINDOW  batches of 10 KB under way, 1 to %d\n"
                "  COPIES  backups, 1 to %d; 3 when not given\n",
                WINDOW_MAX, COPIES_MAX);
        return 2;
    }
    for (unsigned i = 0; i < 1 + r.copies; i++) {
        r.rings[i] = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (r.rings[i] == MAP_FAILED) fail("mmap");
    }
    r.client = connect_pair();
    for (unsigned i = 0; i < r.copies; i++)
        r.backups[i] = connect_pair();
    start_all(&r);

    double before = cpu_seconds(RUSAGE_SELF);
    struct outcome outcome = run_client(&r);
    double client = cpu_seconds(RUSAGE_SELF) - before;
    close(r.client.near);
    await_all(&r);
    double all = client + cpu_seconds(RUSAGE_CHILDREN);
    double records = (double)outcome.batches_all * BATCH_RECORDS;
    printf("{\"how\": \"%s\", \"window\": %u, \"copies\": %u, \"records_per_second\": %.0f, "
           "\"cpu_ns\": %.1f, \"client_cpu_ns\": %.1f}\n",
           argv[1], r.window, r.copies, (double)outcome.batches * BATCH_RECORDS / outcome.seconds,
           all * 1e9 / records, client * 1e9 / records);
    return 0;
}
