/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the real net port moves bytes over loopback. A program for people, not a test.
 *
 *   net_bench [connections] [batch bytes] [batches per send] [senders] [seconds]
 *
 * One actor receives and looks at every frame's header; one or more actors send frames of
 * `batch bytes` in gathered writes. Prints GB/s, and CPU seconds of the receiver and of one sender
 * per GB. */
#include "base/assert.h"
#include "base/bytes.h"
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SENDERS_MAX = 8, SENDS_PER_CONN = 4, BATCHES_MAX = LEAT_SEND_IOVS_MAX };

struct bench_conn {
    struct bench_sender *sender;
    struct leat_conn *conn;
    struct leat_send send[SENDS_PER_CONN];
    struct leat_iov iov[BATCHES_MAX];
};

struct bench_sender {
    const struct leat_env *env;
    struct bench_conn *conns;
    unsigned number;
    clockid_t cpu;
};

static unsigned conn_count = 4, batches = 16, sender_count = 1, seconds = 3;
static size_t batch_bytes = 10240;
static const struct leat_env *receiver_env;
static char address[128];
static uint8_t *frame;
static _Atomic uint64_t received, frames, calls;
static _Atomic bool listening, stopping;
static struct bench_sender senders[SENDERS_MAX];
static clockid_t receiver_cpu;

static size_t receive_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    size_t used = 0, count = 0;
    while (bytes - used >= 4) {
        size_t need = leat_get_le32(data + used);
        if (bytes - used < need) {
            *want_bytes = need;
            break;
        }
        used += need;
        count++;
    }
    atomic_fetch_add_explicit(&received, used, memory_order_relaxed);
    atomic_fetch_add_explicit(&frames, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return used;
}
static void receive_closed(void *user, struct leat_conn *conn, leat_err why)
{
    (void)why; /* the sender stops first */
}
static const struct leat_conn_handler receive_handler = {NULL, receive_bytes, receive_closed};

static void *receive_accept(void *acceptor, struct leat_conn *conn,
                            const struct leat_conn_handler **out_handler)
{
    *out_handler = &receive_handler;
    return acceptor;
}
static void receive_start(void *actor)
{
    struct leat_error error;
    pthread_getcpuclockid(pthread_self(), &receiver_cpu);
    LEAT_ASSERT(receiver_env->net->listen(receiver_env->net->ctx, "127.0.0.1:0", receive_accept,
                                          actor, address, &error) == LEAT_OK);
    atomic_store(&listening, true);
}

static void send_again(struct leat_send *send, leat_err rc)
{
    struct bench_conn *bench = send->owner;
    if (rc || atomic_load_explicit(&stopping, memory_order_relaxed)) return;
    bench->sender->env->net->send(bench->conn, send);
}
static void send_open(void *user, struct leat_conn *conn)
{
    struct bench_conn *bench = user;
    for (unsigned i = 0; i < batches; i++)
        bench->iov[i] = (struct leat_iov){frame, batch_bytes};
    for (unsigned i = 0; i < SENDS_PER_CONN; i++) {
        bench->send[i] = (struct leat_send){
            .iovs = bench->iov, .iov_count = batches, .on_sent = send_again, .owner = bench};
        bench->sender->env->net->send(conn, &bench->send[i]);
    }
}
static const struct leat_conn_handler send_handler = {send_open, receive_bytes, receive_closed};

static void send_start(void *actor)
{
    struct bench_sender *sender = actor;
    pthread_getcpuclockid(pthread_self(), &sender->cpu);
    for (unsigned i = 0; i < conn_count; i++) {
        sender->conns[i].sender = sender;
        LEAT_ASSERT(sender->env->net->connect(sender->env->net->ctx, address, &send_handler,
                                              &sender->conns[i],
                                              &sender->conns[i].conn) == LEAT_OK);
    }
}

static double clock_seconds(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc > 1) conn_count = (unsigned)(int)strtol(argv[1], NULL, 10);
    if (argc > 2) batch_bytes = (size_t)atoll(argv[2]);
    if (argc > 3) batches = (unsigned)(int)strtol(argv[3], NULL, 10);
    if (argc > 4) sender_count = (unsigned)(int)strtol(argv[4], NULL, 10);
    if (argc > 5) seconds = (unsigned)(int)strtol(argv[5], NULL, 10);
    if (batches > BATCHES_MAX || sender_count > SENDERS_MAX || batch_bytes < 4) return 2;
    frame = calloc(1, batch_bytes);
    leat_put_le32(frame, (uint32_t)batch_bytes);

    struct leat_os_world *world;
    struct leat_error error;
    struct leat_os_world_options options = {0};
    static const struct leat_actor_ops ops = {0};
    LEAT_ASSERT(leat_os_world_create(&options, &world, &error) == LEAT_OK);
    LEAT_ASSERT(leat_os_actor_create(world, 0, LEAT_OS_ACTOR_CORE, &receiver_env, &error) ==
                LEAT_OK);
    int dummy;
    LEAT_ASSERT(leat_os_actor_start(world, 0, &dummy, &ops, receive_start, "receive", -1) ==
                LEAT_OK);
    while (!atomic_load(&listening))
        usleep(1000);
    for (unsigned i = 0; i < sender_count; i++) {
        senders[i].conns = calloc(conn_count, sizeof(struct bench_conn));
        LEAT_ASSERT(leat_os_actor_create(world, i + 1, LEAT_OS_ACTOR_CLIENT, &senders[i].env,
                                         &error) == LEAT_OK);
        LEAT_ASSERT(leat_os_actor_start(world, i + 1, &senders[i], &ops, send_start, "send", -1) ==
                    LEAT_OK);
    }
    sleep(1); /* warm */
    uint64_t bytes_0 = atomic_load(&received), frames_0 = atomic_load(&frames);
    uint64_t calls_0 = atomic_load(&calls);
    double at_0 = clock_seconds(CLOCK_MONOTONIC);
    double in_0 = clock_seconds(receiver_cpu), out_0 = clock_seconds(senders[0].cpu);
    sleep(seconds);
    double took = clock_seconds(CLOCK_MONOTONIC) - at_0;
    double gb = (double)(atomic_load(&received) - bytes_0) / 1e9;
    double in_cpu = clock_seconds(receiver_cpu) - in_0;
    double out_cpu = clock_seconds(senders[0].cpu) - out_0;
    uint64_t new_calls = atomic_load(&calls) - calls_0;
    printf("%.2f GB/s, %.2f M frames/s, %.0f KiB per callback, receiver %.3f CPU s/GB (%.0f %%), "
           "senders %.3f CPU s/GB\n",
           gb / took, (double)(atomic_load(&frames) - frames_0) / took / 1e6,
           gb * 1e9 / (double)new_calls / 1024, in_cpu / gb, in_cpu / took * 100,
           out_cpu * sender_count / gb);
    atomic_store(&stopping, true);
    for (unsigned i = sender_count; i > 0; i--)
        leat_os_actor_join(world, i);
    leat_os_world_destroy(&world);
    for (unsigned i = 0; i < sender_count; i++)
        free(senders[i].conns);
    free(frame);
    return 0;
}
