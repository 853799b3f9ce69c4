/* SPDX-License-Identifier: Apache-2.0 */
/* os/rmem_verbs*.c alone: libibverbs, librdmacm, the system's calls and those to the rest of os/ are played here. The
 * device does nothing by itself. Each call is a line of the trace, and a test may have the n-th of a kind refused; the
 * test says which events and completions come. A call that the manual pages forbid stops the test: an id that goes
 * before its queue pair or with an event that nobody acknowledged, a queue of completions that goes before its queue
 * pair, a request from memory that is not registered. For one test program only. */
#ifndef LEAT_TESTS_OS_VERBS_ALONE_H
#define LEAT_TESTS_OS_VERBS_ALONE_H

#include "os/rmem_verbs_writer.h"

#include "base/mem.h"
#include "base/node_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/trace.h"

#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)

enum call {
    NOTHING,
    ACCESS,
    NAMES,
    FACES,
    FLAGS,
    UNBLOCK,
    CHANNEL,
    ID,
    BIND,
    LISTEN,
    PD,
    CQ,
    NOTIFY,
    POLL,
    REGISTER,
    QP,
    ACCEPT,
    ADDRESS,
    ROUTE,
    TIMEOUT,
    CONNECT,
    COMPLETIONS,
    POST,
    WATCH
};
enum kind { CHANNELS, IDS, PDS, CQS, MRS, QPS, COMPLETION_CHANNELS, KINDS };
enum { ADDRESSES = 5, WCS_MAX = 300, EVENTS_MAX = 200, PRIVATE_MAX = 56, WATCHES = 4 };

struct played_event {
    struct rdma_cm_event event;
    struct leat_list link;
    uint8_t told[PRIVATE_MAX];
};
struct played_channel {
    struct rdma_event_channel channel;
    struct leat_list events;
};
struct played_id {
    struct rdma_cm_id id;
    unsigned number, unacked;
};
struct played_cq {
    struct ibv_cq cq;
    struct ibv_wc wcs[WCS_MAX];
    unsigned number, count, taken, acked;
    bool armed;
};
struct played_qp {
    struct ibv_qp qp;
    unsigned number;
};
struct played_mr {
    struct ibv_mr mr;
    struct played_mr *next;
    unsigned number;
};

static struct {
    enum call call;
    int skip, error; /* the call after so many fails by that; 0: none */
} script;

static struct {
    struct ibv_device device;
    struct ibv_context context, other;
    const char *own; /* the address that the device has */
    struct sockaddr_storage named[ADDRESSES], faces[ADDRESSES];
    struct addrinfo names[ADDRESSES];
    struct ifaddrs interfaces[ADDRESSES];
    unsigned named_count, face_count;
    unsigned made[KINDS], alive[KINDS], key;
    struct played_mr *regions;
    struct {
        int fd;
        void (*on_ready)(void *user);
        void *user;
    } watches[WATCHES];
    unsigned watch_count, polls;
    int flags;                  /* of each descriptor */
    uint8_t told[PRIVATE_MAX];  /* what connect or accept says last */
    uint8_t heard[PRIVATE_MAX]; /* ... and the other side */
    struct ibv_cq *due[EVENTS_MAX];
    unsigned due_count;
    struct leat_mail *mails[8];
    struct os_job *jobs[8];
    unsigned mail_count, job_count;
    struct {
        const char *name;
        const uint8_t *base;
        uint64_t bytes;
    } places[8];
    unsigned place_count;
} played;

static struct leat_os_world world;
static struct os_rmem rmem;
static struct os_actor actor, store;
static struct leat_error error;

static inline void plan(enum call call, int skip, int number)
{
    script.call = call;
    script.skip = skip;
    script.error = number;
}

static inline bool fails(enum call call)
{
    if (script.error == 0 || script.call != call || script.skip-- != 0) return false;
    errno = script.error;
    script.error = 0;
    return true;
}

static inline void *object(enum kind kind, size_t bytes)
{
    void *made = calloc(1, bytes);
    assert_non_null(made);
    played.made[kind]++;
    played.alive[kind]++;
    return made;
}

static inline void object_ends(enum kind kind, void *made)
{
    assert_true(played.alive[kind] > 0);
    played.alive[kind]--;
    free(made);
}

/* ---- addresses ---- */

static inline void address_trace(const struct sockaddr *at)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (at->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)at;
        for (unsigned i = 0; i < sizeof four->sin_zero; i++)
            assert_int_equal(four->sin_zero[i], 0);
        trace(" %s:%u", inet_ntop(AF_INET, &four->sin_addr, text, sizeof text),
              ntohs(four->sin_port));
        return;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)at;
    assert_int_equal(at->sa_family, AF_INET6);
    assert_int_equal(six->sin6_flowinfo, 0);
    trace(" [%s%%%u]:%u", inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text),
          six->sin6_scope_id, ntohs(six->sin6_port));
}

static inline bool address_is(const struct sockaddr *at, const char *text)
{
    uint8_t bytes[16];
    if (!text) return false;
    if (at->sa_family == AF_INET)
        return inet_pton(AF_INET, text, bytes) == 1 &&
               memcmp(bytes, &((const struct sockaddr_in *)(const void *)at)->sin_addr, 4) == 0;
    return inet_pton(AF_INET6, text, bytes) == 1 &&
           memcmp(bytes, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, 16) == 0;
}

/* With a port and a scope of its own. */
static inline void address_make(struct sockaddr_storage *out, const char *text)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(77);
    } else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(77);
        six->sin6_scope_id = 9;
    } else {
        out->ss_family = AF_UNIX;
    }
}

/* What the host's name stands for, and what an interface has. */
static inline void named(const char *text)
{
    unsigned i = played.named_count++;
    address_make(&played.named[i], text);
    played.names[i].ai_addr = (struct sockaddr *)&played.named[i];
    if (i > 0) played.names[i - 1].ai_next = &played.names[i];
}
static inline void faced(const char *text)
{
    unsigned i = played.face_count++;
    if (text) address_make(&played.faces[i], text);
    if (text) played.interfaces[i].ifa_addr = (struct sockaddr *)&played.faces[i];
    if (i > 0) played.interfaces[i - 1].ifa_next = &played.interfaces[i];
}

/* ---- the system ---- */

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    trace("access %s%s\n", path, mode == (R_OK | W_OK) ? "" : " otherwise");
    return fails(ACCESS) ? -1 : 0;
}
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    bool usual = !service && hints->ai_socktype == SOCK_STREAM && hints->ai_family == AF_UNSPEC;
    trace("names of %s%s\n", host, usual ? "" : " otherwise");
    if (fails(NAMES)) return EAI_AGAIN;
    *out = played.names;
    return played.named_count > 0 ? 0 : EAI_NONAME;
}
void __wrap_freeaddrinfo(struct addrinfo *all);
void __wrap_freeaddrinfo(struct addrinfo *all)
{
    assert_ptr_equal(all, played.names);
    trace("names end\n");
}
int __wrap_getifaddrs(struct ifaddrs **out);
int __wrap_getifaddrs(struct ifaddrs **out)
{
    trace("interfaces\n");
    if (fails(FACES)) return -1;
    *out = played.face_count > 0 ? played.interfaces : NULL;
    return 0;
}
void __wrap_freeifaddrs(struct ifaddrs *all);
void __wrap_freeifaddrs(struct ifaddrs *all)
{
    (void)all;
    trace("interfaces end\n");
}
int __wrap_fcntl64(int fd, int how, ...);
int __wrap_fcntl64(int fd, int how, ...)
{
    if (how == F_GETFL) return fails(FLAGS) ? -1 : played.flags;
    va_list args;
    va_start(args, how);
    bool usual = how == F_SETFL && va_arg(args, int) == (played.flags | O_NONBLOCK);
    va_end(args);
    trace("unblock %d%s\n", fd, usual ? "" : " otherwise");
    return fails(UNBLOCK) ? -1 : 0;
}

/* ---- the others of os/ ---- */

struct os_watch *__wrap_leat_os_watch_open(struct os_actor *at, int fd, void (*on_ready)(void *),
                                           void *user);
struct os_watch *__wrap_leat_os_watch_open(struct os_actor *at, int fd, void (*on_ready)(void *),
                                           void *user)
{
    assert_ptr_equal(at, &actor);
    trace("watch %d\n", fd);
    if (fails(WATCH)) return NULL;
    assert_true(played.watch_count < WATCHES);
    unsigned i = played.watch_count++;
    played.watches[i].fd = fd;
    played.watches[i].on_ready = on_ready;
    played.watches[i].user = user;
    return (struct os_watch *)&played.watches[i];
}
void __wrap_leat_os_watch_close(struct os_watch **watch);
void __wrap_leat_os_watch_close(struct os_watch **watch)
{
    for (unsigned i = 0; i < played.watch_count; i++)
        if (*watch == (struct os_watch *)&played.watches[i]) {
            trace("watch %d ends\n", played.watches[i].fd);
            played.watches[i].fd = -1;
        }
    *watch = NULL;
}
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job);
void __wrap_leat_os_job_start(struct os_rmem *at, struct os_job *job)
{
    assert_ptr_equal(at, &rmem);
    assert_ptr_equal(job->actor, &actor);
    trace("job\n");
    assert_true(played.job_count < 8);
    played.jobs[played.job_count++] = job;
}
static inline void mail_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    assert_ptr_equal(ctx, &actor);
    assert_int_equal(to, 3);
    trace("mail\n");
    assert_true(played.mail_count < 8);
    played.mails[played.mail_count++] = mail;
}
static inline void log_line(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    trace("log %d %s\n", level, line);
}

/* A descriptor is readable. */
static inline void ready(int fd)
{
    for (unsigned i = 0; i < played.watch_count; i++)
        if (played.watches[i].fd == fd) {
            played.watches[i].on_ready(played.watches[i].user);
            return;
        }
    fail_msg("nobody watches %d", fd);
}

/* The helper's thread runs the oldest job, and its mail comes. */
static inline void job_ends(void)
{
    assert_true(played.job_count > 0);
    struct os_job *job = played.jobs[0];
    memmove(played.jobs, played.jobs + 1, --played.job_count * sizeof played.jobs[0]);
    job->run(job);
    job->mail.deliver(NULL, &job->mail);
}
static inline void mail_comes(void)
{
    assert_true(played.mail_count > 0);
    struct leat_mail *mail = played.mails[0];
    memmove(played.mails, played.mails + 1, --played.mail_count * sizeof played.mails[0]);
    mail->deliver(NULL, mail);
}

#include "tests/os/verbs_device.h"

/* ---- life of a test ---- */

static inline int begin(void **state)
{
    (void)state;
    memset(&played, 0, sizeof played);
    memset(&world, 0, sizeof world);
    memset(&rmem, 0, sizeof rmem);
    memset(&actor, 0, sizeof actor);
    memset(&store, 0, sizeof store);
    memset(&error, 0, sizeof error);
    plan(NOTHING, 0, 0);
    played.flags = O_RDWR;
    device_begins();
    rmem.world = &world;
    rmem.host_actor = &actor;
    rmem.in_memory = true;
    rmem.host.kinds = 1u << LEAT_RMEM_TCP | 1u << LEAT_RMEM_VERBS;
    (void)pthread_mutex_init(&rmem.lock, NULL);
    actor.number = 3;
    actor.post = (struct leat_post){.ctx = &actor, .send = mail_send, .self = 3};
    leat_node_log_set(log_line, NULL, LEAT_NODE_LOG_INFO);
    trace_begin();
    return 0;
}

/* The device and all that was made with it have gone. */
static inline void nothing_is_left(void)
{
    for (enum kind kind = 0; kind < KINDS; kind++)
        assert_int_equal(played.alive[kind], 0);
    assert_null(rmem.verbs);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), 0);
}

static inline int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    return leat_mem_bytes(LEAT_MEM_NET) != 0;
}

#define VERBS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* A device with the address 10.0.0.1, of which the host's name is one. */
static inline void device_opens(void)
{
    played.own = "10.0.0.1";
    named(played.own);
    leat_os_verbs_open(&rmem, "host", &error);
    assert_non_null(rmem.verbs);
    assert_int_equal(error.code, LEAT_OK);
    trace_begin();
}

static inline void device_closes(void)
{
    leat_os_verbs_actor_close(&rmem, &actor);
    leat_os_verbs_close(&rmem);
    nothing_is_left();
    trace_begin();
}

#endif
