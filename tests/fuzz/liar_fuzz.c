/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster of three brokers, of which one lies: the requests and answers that the liar sends are changed as the input
 * says before their tags are made. So whatever a member of the cluster can send reaches the code that takes such a
 * body: bodies between brokers, between primary and backup, between coordinators, data, hellos. No broker dies of it,
 * the liar included: no assertion, no sanitizer's report, no endless loop, no memory without bound. What a member with
 * the key can make the other brokers believe is not judged here: the cluster trusts its members.
 *
 * The input: a byte which world, a byte which node lies, then pieces (fuzz.h), in order:
 *   LIE   from now on frames of a kind are changed; see lie_take() and `enum op`
 *   WAIT  two bytes: so many times 4 ms pass
 *   ASK   byte which node, byte which kind, control body: a client asks that
 *   FAULT byte which node, byte: the node is killed, or its connections are
 *   BELOW byte which node, and a byte each for stream, streamlet, log and segment: the node asks all other nodes for
 *         replicas of that segment, as after an offset gap, which hardly any seed brings about
 *
 * A world is made once, and left running in a process of its own until streams are made and records flow; each input
 * then runs in a child of that process. */
#include "child.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/ownership/below.h"
#include "coordinator/membership/state.h"
#include "link/link.h"
#include "tests/sim/asks.h"
#include "tests/sim/stranger.h"
#include "wire/frame.h"

enum {
    WORLDS = 4,
    NODES = 3,
    SECONDS_MAX = 60,
    RECORDS = 2000,
    RECORDS_BEFORE = 150, /* acked when an input begins */
    LOOK_US = 100 * 1000,
    STEP_US = 2000,
    RUN_US_MAX = 5 * 1000 * 1000, /* virtual, then the schedule ends */
    AFTER_US = 300 * 1000,
    PAUSE_US = 400 * 1000, /* of producers, at most: what nodes say to one another matters */
    INPUT_BYTES_MAX = 64 * 1024,
    FRAME_BYTES = 256 * 1024,
    LIES_MAX = 64,
    ALWAYS = 15,
    HEAP_SPARE_BYTES = 128 * 1024 * 1024,
};

enum what { LIE, WAIT, ASK, FAULT, BELOW, WHATS };
enum op {
    OP_BODY,          /* the control body is these bytes */
    OP_FIELD,         /* ... has another value at one place: enum field */
    OP_BYTES,         /* two bytes where, then others are written there */
    OP_CUT,           /* two bytes: so much of it is left */
    OP_PAYLOAD,       /* the payload is these bytes */
    OP_PAYLOAD_BYTES, /* two bytes where, then others are written there */
    OP_ERROR,         /* it is a refusal; its body is these bytes, or a right one of that code */
    OP_BECOME,        /* byte: it is of this kind, with these bytes as control body */
    OPS,
};
/* How OP_FIELD uses the value number n: a byte n, a byte of these, eight bytes. */
enum field { FIELD_IS, FIELD_ADD, FIELD_ARRAY, FIELD_BIN, FIELD_NONE, FIELD_TWICE, FIELDS };

struct lie {
    uint16_t kind;
    bool answers;
    enum op op;
    unsigned skip, left;
    const uint8_t *bytes;
    size_t count;
};

static struct scenario *scenario;
static struct sim_server *liar; /* NULL: nobody lies yet */
static struct lie lies[LIES_MAX];
static unsigned lie_count;
static struct fuzz_pieces pieces;
static struct sim_actor *asker;
static uint64_t begun_us, heap_before;
static unsigned boots[SIM_SERVERS_MAX]; /* when the input began */
static unsigned frames[256][2], lied;

/* ---- what a lie makes of a frame ---- */

struct said {
    struct leat_frame head;
    size_t control_bytes, payload_bytes;
    uint8_t control[FRAME_BYTES];
    uint8_t payload[LEAT_FRAME_BYTES_MAX];
};
static struct said said;

/* How long a value of msgpack is, without what an array holds; 0: it is cut. */
static size_t token_bytes(const uint8_t *at, size_t left)
{
    static const uint8_t fixed[0x20] = {1, 0, 1, 1, 2, 3, 5, 3,  4,  6, 5, 9, 2, 3, 5, 9,
                                        2, 3, 5, 9, 3, 4, 6, 10, 18, 2, 3, 5, 3, 5, 3, 5};
    size_t bytes;
    if (left == 0) return 0;
    if (at[0] < 0xa0 || at[0] >= 0xe0)
        bytes = 1;
    else if (at[0] < 0xc0)
        bytes = 1u + (at[0] & 31);
    else
        bytes = fixed[at[0] - 0xc0];
    if ((at[0] == 0xc4 || at[0] == 0xd9) && left > 1) bytes = 2u + at[1];
    if ((at[0] == 0xc5 || at[0] == 0xda) && left > 2) bytes = 3u + leat_get_be16(at + 1);
    return bytes == 0 || bytes > left ? 0 : bytes;
}

static uint64_t token_number(const uint8_t *at)
{
    switch (at[0]) {
    case 0xcc:
        return at[1];
    case 0xcd:
        return leat_get_be16(at + 1);
    case 0xce:
        return leat_get_be32(at + 1);
    case 0xcf:
        return (uint64_t)leat_get_be32(at + 1) << 32 | leat_get_be32(at + 5);
    default:
        return at[0] < 0x80 ? at[0] : 0;
    }
}

static size_t token_make(uint8_t out[32], enum field field, uint64_t value, const uint8_t *was)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out, 32);
    uint8_t bytes[16] = {0};
    leat_put_le64(bytes, value);
    switch (field) {
    case FIELD_IS:
        leat_msg_write_u64(&writer, value);
        break;
    case FIELD_ADD:
        leat_msg_write_u64(&writer, token_number(was) + value);
        break;
    case FIELD_ARRAY:
        leat_msg_write_array(&writer, (uint32_t)value);
        break;
    case FIELD_BIN:
        leat_msg_write_bin(&writer, bytes, value % sizeof bytes);
        break;
    case FIELD_NONE:
    case FIELD_TWICE:
    case FIELDS:
        break;
    }
    return writer.used;
}

static void field_change(const struct lie *lie)
{
    uint8_t made[32];
    size_t at = 0, bytes = 0;
    if (lie->count < 10) return;
    for (unsigned i = 0; i <= lie->bytes[0] && at + bytes < said.control_bytes; i++) {
        at += bytes;
        bytes = token_bytes(said.control + at, said.control_bytes - at);
        if (bytes == 0) return;
    }
    enum field field = lie->bytes[1] % FIELDS;
    size_t rest = said.control_bytes - at - bytes;
    size_t more = token_make(made, field, leat_get_le64(lie->bytes + 2), said.control + at);
    if (field == FIELD_TWICE) { /* the value, and what follows it, come once more */
        if (said.control_bytes + bytes + rest > sizeof said.control) return;
        memmove(said.control + said.control_bytes, said.control + at, bytes + rest);
        said.control_bytes += bytes + rest;
        return;
    }
    if (at + more + rest > sizeof said.control) return;
    memmove(said.control + at + more, said.control + at + bytes, rest);
    memcpy(said.control + at, made, more);
    said.control_bytes = at + more + rest;
}

static void bytes_change(const struct lie *lie, uint8_t *out, size_t count)
{
    if (lie->count < 2 || count == 0) return;
    size_t at = leat_get_le16(lie->bytes) % count, bytes = lie->count - 2;
    if (bytes > count - at) bytes = count - at;
    memcpy(out + at, lie->bytes + 2, bytes);
}

static void bytes_set(const uint8_t *bytes, size_t count, uint8_t *out, size_t *out_count)
{
    if (count) memcpy(out, bytes, count);
    *out_count = count;
}

static void error_make(const struct lie *lie)
{
    struct leat_msg_writer writer;
    said.head.flags |= LEAT_FRAME_ERROR;
    said.payload_bytes = 0;
    if (lie->count != 1) {
        bytes_set(lie->bytes, lie->count, said.control, &said.control_bytes);
        return;
    }
    leat_msg_writer_init(&writer, said.control, sizeof said.control);
    leat_msg_error_encode(&writer, (leat_err)lie->bytes[0], "a refusal");
    said.control_bytes = writer.used;
}

static void lie_apply(const struct lie *lie)
{
    switch (lie->op) {
    case OP_BODY:
        bytes_set(lie->bytes, lie->count, said.control, &said.control_bytes);
        break;
    case OP_FIELD:
        field_change(lie);
        break;
    case OP_BYTES:
        bytes_change(lie, said.control, said.control_bytes);
        break;
    case OP_CUT:
        if (lie->count >= 2 && leat_get_le16(lie->bytes) < said.control_bytes)
            said.control_bytes = leat_get_le16(lie->bytes);
        break;
    case OP_PAYLOAD:
        bytes_set(lie->bytes, lie->count, said.payload, &said.payload_bytes);
        break;
    case OP_PAYLOAD_BYTES:
        bytes_change(lie, said.payload, said.payload_bytes);
        break;
    case OP_ERROR:
        error_make(lie);
        break;
    case OP_BECOME:
        if (lie->count == 0) break;
        said.head.kind = (uint16_t)(LEAT_NODE_KIND_HELLO + lie->bytes[0]);
        bytes_set(lie->bytes + 1, lie->count - 1, said.control, &said.control_bytes);
        break;
    case OPS:
        break;
    }
}

/* ---- where frames are changed: the linker puts this in front of leat_mac_tag() ---- */

void __real_leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                         uint8_t out_tag[LEAT_TAG_BYTES]);
void __wrap_leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                         uint8_t out_tag[LEAT_TAG_BYTES]);

static bool liar_speaks(void)
{
    const struct sim_world *world = scenario->world;
    const struct sim_process *process = world->running ? world->running->process : world->entered;
    return liar && liar->process && process == liar->process;
}

/* All of a frame but its tag. False: it is not one, or too long. */
static bool said_take(const struct leat_iov *iovs, unsigned iov_count)
{
    const uint8_t *head = iovs[0].base;
    size_t want;
    said.payload_bytes = 0;
    for (unsigned i = 1; i < iov_count; i++) {
        if (iovs[i].bytes) memcpy(said.payload + said.payload_bytes, iovs[i].base, iovs[i].bytes);
        said.payload_bytes += iovs[i].bytes;
    }
    (void)leat_frame_decode(head, iovs[0].bytes, &said.head, &want);
    said.control_bytes = iovs[0].bytes - LEAT_FRAME_HEADER_BYTES;
    if (said.control_bytes > sizeof said.control) return false;
    memcpy(said.control, head + LEAT_FRAME_HEADER_BYTES, said.control_bytes);
    return true;
}

static bool lies_apply(void)
{
    bool answer = said.head.flags & LEAT_FRAME_ANSWER, any = false;
    uint16_t kind = said.head.kind;
    for (unsigned i = 0; i < lie_count; i++) {
        struct lie *lie = &lies[i];
        if (lie->kind != kind || lie->answers != answer || lie->left == 0) continue;
        if (lie->skip) {
            lie->skip--;
            continue;
        }
        if (lie->left != ALWAYS) lie->left--;
        lie_apply(lie);
        any = true;
    }
    return any;
}

/* The frame goes out as one piece, which lives as long as this process. */
static void said_put(struct leat_iov *iovs, unsigned iov_count)
{
    size_t bytes = LEAT_FRAME_HEADER_BYTES + said.control_bytes + said.payload_bytes;
    if (bytes + LEAT_TAG_BYTES > LEAT_FRAME_BYTES_MAX ||
        said.control_bytes > LEAT_CONTROL_BYTES_MAX)
        return;
    uint8_t *whole = malloc(bytes);
    LEAT_ASSERT(whole != NULL);
    memcpy(whole + LEAT_FRAME_HEADER_BYTES, said.control, said.control_bytes);
    if (said.payload_bytes)
        memcpy(whole + LEAT_FRAME_HEADER_BYTES + said.control_bytes, said.payload,
               said.payload_bytes);
    /* Last: its checksum is of the control body, too. */
    leat_frame_encode(whole, (enum leat_kind)said.head.kind, LEAT_NODE_VERSION_MAX, said.head.flags,
                      said.head.request, (uint32_t)said.control_bytes,
                      (uint32_t)(said.payload_bytes + LEAT_TAG_BYTES));
    iovs[0] = (struct leat_iov){whole, bytes};
    for (unsigned i = 1; i < iov_count; i++)
        iovs[i].bytes = 0;
    lied++;
}

void __wrap_leat_mac_tag(struct leat_mac *mac, const struct leat_iov *iovs, unsigned iov_count,
                         uint8_t out_tag[LEAT_TAG_BYTES])
{
    /* The slot's own, which its owner may write. */
    if (liar_speaks() && said_take(iovs, iov_count)) {
        unsigned number = (unsigned)said.head.kind - LEAT_NODE_KIND_HELLO;
        if (number < 256) frames[number][said.head.flags & LEAT_FRAME_ANSWER ? 1 : 0]++;
        if (lies_apply()) said_put((struct leat_iov *)(uintptr_t)iovs, iov_count);
    }
    __real_leat_mac_tag(mac, iovs, iov_count, out_tag);
}

/* ---- the schedule ---- */

/* A byte the kind, counted from hello's; a byte: bit 0 of answers, bits 1 to 3 the op, bits 4 to 7 how often; a byte
 * how many go as they are before. */
static void lie_take(const struct fuzz_piece *piece)
{
    if (piece->count < 3 || lie_count == LIES_MAX) return;
    unsigned times = piece->bytes[1] >> 4;
    lies[lie_count++] = (struct lie){
        .kind = (uint16_t)(LEAT_NODE_KIND_HELLO + piece->bytes[0]),
        .answers = piece->bytes[1] & 1,
        .op = (piece->bytes[1] >> 1) % OPS,
        .left = times == 0 ? 1 : times,
        .skip = piece->bytes[2],
        .bytes = piece->bytes + 3,
        .count = piece->count - 3,
    };
}

struct ask {
    size_t bytes;
    uint8_t request[SIM_ASK_BYTES_MAX + LEAT_FRAME_HEADER_BYTES + UINT16_MAX];
};

static void ask_on_open(void *user, struct leat_conn *conn)
{
    struct ask *ask = user;
    (void)asker->net.send_copy(conn, ask->request, ask->bytes);
}

static size_t ask_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                           size_t *want_bytes)
{
    (void)user, (void)conn, (void)data;
    *want_bytes = 0;
    return bytes;
}

static void ask_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    (void)conn, (void)why;
    free(user);
}

static void ask_send(const struct fuzz_piece *piece)
{
    static const struct leat_conn_handler handler = {ask_on_open, ask_on_bytes, ask_on_closed};
    struct leat_conn *conn;
    if (piece->count < 2) return;
    const struct sim_server *server = &scenario->servers[piece->bytes[0] % scenario->server_count];
    struct ask *ask = malloc(sizeof *ask);
    LEAT_ASSERT(ask != NULL);
    size_t control = piece->count - 2;
    uint8_t *at = ask->request + sim_ask_hello(ask->request, "asker", 0, 1);
    if (control) memcpy(at + LEAT_FRAME_HEADER_BYTES, piece->bytes + 2, control);
    leat_frame_encode(at, (enum leat_kind)piece->bytes[1], LEAT_PROTOCOL_VERSION_MAX, 0, 2,
                      (uint32_t)control, 0);
    ask->bytes = (size_t)(at - ask->request) + LEAT_FRAME_HEADER_BYTES + control;
    if (asker->net.connect(asker->net.ctx, server->address, &handler, ask, &conn) != LEAT_OK)
        free(ask);
}

static void fault_do(const struct fuzz_piece *piece)
{
    if (piece->count < 2) return;
    struct sim_server *server = &scenario->servers[piece->bytes[0] % scenario->server_count];
    if (!server->process->alive || !server->ready) return;
    if (piece->bytes[1] & 1)
        (void)sim_net_reset(server->process, 300);
    else
        sim_process_die(server->process, SIM_DEATH_KILL);
}

static void below_on_done(struct leat_below *below, leat_err rc)
{
    if (rc == LEAT_OK && below->found.count > 0) {
        LEAT_ASSERT(below->found.segment <= below->segment);
        (void)leat_below_best(&below->found);
        while (leat_below_pass(&below->found))
            continue;
    }
    free(below);
}

static void below_start(struct sim_world *world, struct sim_event *event)
{
    (void)world;
    leat_below_start(event->a);
}

static void below_ask(const struct fuzz_piece *piece)
{
    if (piece->count < 5) return;
    struct sim_server *server = &scenario->servers[piece->bytes[0] % scenario->server_count];
    if (!sim_serves(server) || server == liar) return;
    struct leat_below *below = calloc(1, sizeof *below);
    LEAT_ASSERT(below != NULL);
    *below = (struct leat_below){.core = &server->node->cores[0],
                                 .ref = {scenario->streams[piece->bytes[1] % SIM_STREAMS].id,
                                         piece->bytes[2] % CHECK_STREAMLETS_MAX,
                                         piece->bytes[3] % CHECK_LOGS_MAX},
                                 .segment = piece->bytes[4],
                                 .on_done = below_on_done};
    sim_actor_post(server->cores[0], 0, below_start, below);
}

static uint64_t heap_bytes(void)
{
    static const enum leat_mem_tag tags[] = {LEAT_MEM_WIRE,       LEAT_MEM_STORE,  LEAT_MEM_LOG,
                                             LEAT_MEM_ROWS,       LEAT_MEM_BROKER, LEAT_MEM_NET,
                                             LEAT_MEM_COORDINATOR};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        bytes += leat_mem_bytes(tags[i]);
    return bytes;
}

static void kinds_show(void)
{
    for (unsigned kind = 0; kind < 256; kind++)
        if (frames[kind][0] || frames[kind][1])
            fprintf(stderr, "kind %u: %u requests, %u answers\n", kind + LEAT_NODE_KIND_HELLO,
                    frames[kind][0], frames[kind][1]);
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "user %ld.%03ld sys %ld.%03ld faults %ld rss %ld\n", used.ru_utime.tv_sec,
            used.ru_utime.tv_usec / 1000, used.ru_stime.tv_sec, used.ru_stime.tv_usec / 1000,
            used.ru_minflt, used.ru_maxrss);
    fprintf(stderr, "%u lies, %" PRIu64 " us, failure: %s\n", lied,
            scenario->world->now_us - begun_us, scenario->world->failure);
}

/* Only while nobody has died: the dead give nothing back. */
static void heap_check(void)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!sim_serves(&scenario->servers[i]) || scenario->servers[i].boots != boots[i]) return;
    uint64_t bytes = heap_bytes();
    if (bytes <= heap_before + HEAP_SPARE_BYTES) return;
    fprintf(stderr, "the brokers' heaps have grown by %" PRIu64 " bytes\n", bytes - heap_before);
    abort();
}

static void run_end(struct sim_world *world, struct sim_event *event)
{
    (void)world, (void)event;
    if (getenv("LEAT_FUZZ_KINDS")) kinds_show();
    heap_check();
    child_end();
}

static void step(struct sim_world *world, struct sim_event *event)
{
    struct fuzz_piece piece;
    uint64_t wait_us = STEP_US;
    (void)event;
    if (world->now_us - begun_us > RUN_US_MAX || !fuzz_piece_next(&pieces, &piece)) {
        sim_world_at(world, world->now_us + AFTER_US, run_end, NULL);
        return;
    }
    switch ((enum what)(piece.kind % WHATS)) {
    case LIE:
        lie_take(&piece);
        wait_us = 0;
        break;
    case WAIT:
        if (piece.count >= 2) wait_us = leat_get_le16(piece.bytes) % 1024 * 4000u;
        break;
    case ASK:
        ask_send(&piece);
        break;
    case FAULT:
        fault_do(&piece);
        break;
    case BELOW:
        below_ask(&piece);
        break;
    case WHATS:
        break;
    }
    sim_actor_post(asker, wait_us, step, NULL);
}

/* ---- worlds ---- */

static struct world {
    pid_t pid; /* 0: not made yet */
    int asks, tells;
} worlds[WORLDS];
static uint8_t *input; /* shared: count in four bytes, then the bytes */
static int asked, told;

static void input_begin(struct sim_world *world)
{
    size_t size = leat_get_le32(input);
    pieces = (struct fuzz_pieces){input + 4 + 2, input + 4 + size};
    liar = &scenario->servers[input[4 + 1] % scenario->server_count];
    begun_us = world->now_us;
    scenario->pause_us_max = PAUSE_US;
    heap_before = heap_bytes();
    for (unsigned i = 0; i < scenario->server_count; i++)
        boots[i] = scenario->servers[i].boots;
    asker = sim_idle_actor(world, "asker");
    sim_actor_post(asker, 0, step, NULL);
}

static bool is_warm(void)
{
    if (!scenario->streams_made) return false;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!sim_serves(&scenario->servers[i])) return false;
    return check_acked_count(scenario->check) >= RECORDS_BEFORE;
}

/* Each input goes on from here, in a process of its own; this one waits for the next. */
static void look(struct sim_world *world, struct sim_event *event)
{
    char byte;
    if (!is_warm()) {
        sim_world_at(world, world->now_us + LOOK_US, look, event->a);
        return;
    }
    while (read(asked, &byte, 1) == 1) {
        int status = 0;
        pid_t pid = fork();
        LEAT_ASSERT(pid >= 0);
        if (pid == 0) {
            child_begin(SECONDS_MAX);
            input_begin(world);
            return;
        }
        while (waitpid(pid, &status, 0) < 0)
            continue;
        LEAT_ASSERT(write(told, &status, sizeof status) == (ssize_t)sizeof status);
    }
    _exit(0);
}

static void on_built(struct scenario *built)
{
    scenario = built;
    built->with_kafka = built->with_trims = true;
    for (unsigned i = 0; i < SIM_STREAMS; i++)
        built->streams[i].settings.copies = 1 + (i + 2) % NODES;
    sim_world_at(built->world, built->world->now_us + LOOK_US, look, NULL);
}

static void world_serve(unsigned number)
{
    struct scenario_result result;
    struct scenario_options options = {
        .seed = 1 + number,
        .calm = true,
        .nodes = NODES,
        .records = RECORDS,
        .on_built = on_built,
        .tracing = getenv("LEAT_FUZZ_TRACE") != NULL,
    };
    scenario_run(&options, &result);
    /* It stopped by itself: something that the liar brought about, and is not judged. */
    if (liar) run_end(NULL, NULL);
    fprintf(stderr, "world %u does not begin: %s\n", number, result.failure);
    abort();
}

static void world_make(unsigned number)
{
    struct world *world = &worlds[number];
    int there[2], back[2];
    LEAT_ASSERT(pipe(there) == 0 && pipe(back) == 0);
    world->pid = fork();
    LEAT_ASSERT(world->pid >= 0);
    if (world->pid == 0) {
        asked = there[0];
        told = back[1];
        (void)close(there[1]);
        (void)close(back[0]);
        child_signals();
        world_serve(number);
    }
    (void)close(there[0]);
    (void)close(back[1]);
    world->asks = there[1];
    world->tells = back[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int status = 0;
    if (size < 2 || size > INPUT_BYTES_MAX) return 0;
    if (!input) input = child_shared(4 + INPUT_BYTES_MAX);
    child_covered_make();
    struct world *world = &worlds[data[0] % WORLDS];
    if (world->pid == 0) world_make((unsigned)(world - worlds));
    leat_put_le32(input, (uint32_t)size);
    memcpy(input + 4, data, size);
    LEAT_ASSERT(write(world->asks, "", 1) == 1);
    ssize_t got;
    do /* libFuzzer's clock ticks every ten minutes */
        got = read(world->tells, &status, sizeof status);
    while (got < 0 && errno == EINTR);
    LEAT_ASSERT(got == (ssize_t)sizeof status);
    child_judge(status);
    return 0;
}
