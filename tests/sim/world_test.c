/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated ports keep what base/port.h promises. Method: small actors in a world of their own,
 * many seeds each. */
#include "tests/sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct counter {
    struct leat_mail mail[64];
    unsigned got[64], count, turns, wakes;
    struct counter *to;
};

static void on_wake(void *self)
{
    ((struct counter *)self)->wakes++;
}
static void on_turn_end(void *self)
{
    ((struct counter *)self)->turns++;
}
static unsigned checks; /* of all actors */
static void check(const void *self)
{
    (void)self;
    checks++;
}
static const struct leat_actor_ops ops = {
    .on_wake = on_wake, .on_turn_end = on_turn_end, .check = check};

static void mail_in(void *self, struct leat_mail *mail)
{
    struct counter *to = self;
    struct counter *from = to->to;
    to->got[to->count++] = (unsigned)(mail - from->mail);
}

struct two {
    struct sim_process *process;
    struct sim_actor *a, *b;
};

static void send_all(void *arg)
{
    struct two *two = arg;
    struct counter *from = two->a->self;
    for (unsigned i = 0; i < 64; i++) {
        from->mail[i].deliver = mail_in;
        two->a->post.send(two->a->post.ctx, two->b->number, &from->mail[i]);
    }
    two->a->clock.wake_at(two->a->clock.ctx, sim_process_now_us(two->process) + 1000);
}

static void mail_keeps_order_and_ends_turns(void **state)
{
    (void)state;
    unsigned turns = 0;
    checks = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sim_world *world = sim_world_create(seed, false);
        struct two two = {.process = sim_process_create(world, "p")};
        struct counter a = {0}, b = {.to = &a};
        two.a = sim_actor_create(two.process, 0);
        two.b = sim_actor_create(two.process, 1);
        sim_actor_register(two.a, &a, &ops);
        sim_actor_register(two.b, &b, &ops);
        assert_true(sim_process_enter(two.process, send_all, &two));
        sim_world_run(world, world->now_us + 1000000, NULL);
        assert_int_equal(b.count, 64);
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(b.got[i], i);
        assert_true(b.turns >= 1 && b.turns <= 64);
        assert_int_equal(a.wakes, 1);
        turns += a.turns + b.turns;
        sim_world_destroy(&world);
    }
    /* Not after each turn but in slow builds. */
    assert_true(checks > 0 && checks <= turns);
}

/* What came while it stood still, and waits for the end of that, waits no longer. */
static void process_that_goes_on_takes_its_mail_at_once(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create(1, false);
    struct two two = {.process = sim_process_create(world, "p")};
    struct counter a = {0}, b = {.to = &a};
    two.a = sim_actor_create(two.process, 0);
    two.b = sim_actor_create(two.process, 1);
    sim_actor_register(two.a, &a, &ops);
    sim_actor_register(two.b, &b, &ops);
    assert_true(sim_process_enter(two.process, send_all, &two));
    sim_process_pause(two.process, world->now_us + 6000000);
    sim_world_run(world, world->now_us + 1000000, NULL);
    assert_int_equal(b.count, 0);
    sim_process_go_on(two.process);
    sim_world_run(world, world->now_us + 100000, NULL);
    assert_int_equal(b.count, 64);
    assert_int_equal(a.wakes, 1);
    unsigned turns = b.turns;
    sim_world_run(world, world->now_us + 6000000, NULL);
    assert_int_equal(b.turns, turns);
    sim_world_destroy(&world);
}

/* The longest pause counts; when everything is healed, the process goes on at once. */
static void shorter_pause_ends_no_longer_one(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_create(1, false);
    struct two two = {.process = sim_process_create(world, "p")};
    struct counter a = {0}, b = {.to = &a};
    two.a = sim_actor_create(two.process, 0);
    two.b = sim_actor_create(two.process, 1);
    sim_actor_register(two.a, &a, &ops);
    sim_actor_register(two.b, &b, &ops);
    uint64_t begin_us = world->now_us;
    sim_process_pause(two.process, begin_us + 6000000);
    assert_true(sim_process_enter(two.process, send_all, &two));
    sim_world_run(world, begin_us + 500000, NULL);
    sim_process_pause(two.process, begin_us + 1000000);
    sim_world_run(world, begin_us + 2000000, NULL);
    assert_int_equal(a.turns + b.turns, 0);
    assert_int_equal(two.process->paused_until_us, begin_us + 6000000);
    sim_process_go_on(two.process);
    sim_world_run(world, begin_us + 2100000, NULL);
    assert_int_equal(b.count, 64);
    sim_world_destroy(&world);
}

/* ---- an actor that asks to be woken for nothing ---- */

struct asker {
    struct sim_actor *actor;
    unsigned past_left; /* so often it asks for a time that has come */
};

static void asker_on_turn_end(void *self)
{
    struct asker *asker = self;
    uint64_t at_us = sim_process_now_us(asker->actor->process);
    if (asker->past_left == 0) return;
    asker->past_left--;
    asker->actor->clock.wake_at(asker->actor->clock.ctx, at_us);
}

static void ignore_wake(void *self)
{
    (void)self;
}
static const struct leat_actor_ops asker_ops = {.on_wake = ignore_wake,
                                                .on_turn_end = asker_on_turn_end};

static bool asking_fails(unsigned past)
{
    struct sim_world *world = sim_world_create(1, false);
    struct asker asker = {.past_left = past};
    asker.actor = sim_actor_create(sim_process_create(world, "p"), 0);
    asker.actor->wake_at_us = world->now_us + 1000;
    sim_actor_register(asker.actor, &asker, &asker_ops);
    sim_world_run(world, world->now_us + 1000000, NULL);
    bool failed = strncmp(world->failure, "spins:", 6) == 0;
    sim_world_destroy(&world);
    return failed;
}

static void actor_woken_for_a_past_time_again_and_again_fails(void **state)
{
    (void)state;
    assert_false(asking_fails(3));
    assert_true(asking_fails(1000));
}

/* ---- disk ---- */

struct writer {
    struct sim_actor *actor;
    struct leat_file *file;
    uint8_t *data;
    uint64_t offset;
    size_t bytes;
    bool sync, dir;
    leat_err rc;
};

static void write_now(void *arg)
{
    struct writer *w = arg;
    struct leat_disk *disk = &w->actor->disk;
    struct leat_disk_io io = {.file = w->file,
                              .kind = LEAT_DISK_WRITE,
                              .offset = w->offset,
                              .buffer = w->data,
                              .bytes = w->bytes};
    w->rc = disk->run(disk->ctx, &io);
    if (w->rc != LEAT_OK || !w->sync) return;
    io.kind = LEAT_DISK_SYNC;
    w->rc = disk->run(disk->ctx, &io);
}

static void open_now(void *arg)
{
    struct writer *w = arg;
    struct leat_disk *disk = &w->actor->disk;
    w->rc = disk->open(disk->ctx, "f", LEAT_OPEN_CREATE, &w->file, NULL);
    if (w->rc == LEAT_OK && w->dir) w->rc = disk->sync_dir(disk->ctx, ".");
}

static void read_now(void *arg)
{
    struct writer *w = arg;
    struct leat_disk *disk = &w->actor->disk;
    memset(w->data, 0xee, w->bytes);
    w->rc = disk->open(disk->ctx, "f", 0, &w->file, NULL);
    if (w->rc != LEAT_OK) return;
    struct leat_disk_io io = {.file = w->file,
                              .kind = LEAT_DISK_READ,
                              .offset = w->offset,
                              .buffer = w->data,
                              .bytes = w->bytes};
    w->rc = disk->run(disk->ctx, &io);
    w->bytes = io.done_bytes;
}

static struct writer boot(struct sim_world *world, struct sim_disk *disk, uint8_t *data)
{
    struct sim_process *process = sim_process_create(world, "server");
    process->disk = disk;
    struct writer w = {.actor = sim_actor_create(process, LEAT_ACTOR_STORE), .data = data};
    sim_actor_register(w.actor, data, &ops);
    return w;
}

/* Flushed bytes stay, others are old or new by sector; all outcomes turn up over the seeds. */
static void power_cut_keeps_flushed_and_tears_by_sector(void **state)
{
    (void)state;
    unsigned all = 0, none = 0, some = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sim_world *world = sim_world_create(seed, false);
        struct sim_disk *disk = sim_disk_create(world);
        static uint8_t data[16384];
        struct writer w = boot(world, disk, data);
        w.dir = true;
        assert_true(sim_process_enter(w.actor->process, open_now, &w));
        memset(data, 1, sizeof data);
        w.bytes = sizeof data;
        w.sync = true;
        assert_true(sim_process_enter(w.actor->process, write_now, &w));
        memset(data, 2, sizeof data);
        w.sync = false;
        w.offset = 4096;
        w.bytes = 8192;
        assert_true(sim_process_enter(w.actor->process, write_now, &w));
        sim_process_die(w.actor->process, SIM_DEATH_POWER);
        w = boot(world, disk, data);
        w.bytes = sizeof data;
        assert_true(sim_process_enter(w.actor->process, read_now, &w));
        assert_int_equal(w.rc, LEAT_OK);
        assert_int_equal(w.bytes, sizeof data);
        unsigned fresh = 0;
        for (size_t i = 0; i < sizeof data; i += 512) {
            for (size_t j = 1; j < 512; j++)
                assert_int_equal(data[i + j], data[i]);
            if (i < 4096 || i >= 4096 + 8192) assert_int_equal(data[i], 1);
            assert_true(data[i] == 1 || data[i] == 2);
            fresh += data[i] == 2;
        }
        all += fresh == 16;
        none += fresh == 0;
        some += fresh > 0 && fresh < 16;
        sim_disk_destroy(&disk);
        sim_world_destroy(&world);
    }
    assert_true(all && none && some);
}

static void kill_keeps_what_was_written(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_world *world = sim_world_create(seed, false);
        struct sim_disk *disk = sim_disk_create(world);
        static uint8_t data[5000];
        struct writer w = boot(world, disk, data);
        assert_true(sim_process_enter(w.actor->process, open_now, &w));
        memset(data, 7, sizeof data);
        w.bytes = sizeof data;
        assert_true(sim_process_enter(w.actor->process, write_now, &w));
        sim_process_die(w.actor->process, SIM_DEATH_KILL);
        w = boot(world, disk, data);
        w.bytes = sizeof data;
        assert_true(sim_process_enter(w.actor->process, read_now, &w));
        assert_int_equal(w.bytes, sizeof data);
        for (size_t i = 0; i < sizeof data; i++)
            assert_int_equal(data[i], 7);
        sim_disk_destroy(&disk);
        sim_world_destroy(&world);
    }
}

static void name_not_flushed_survives_or_not(void **state)
{
    (void)state;
    unsigned kept = 0, lost = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sim_world *world = sim_world_create(seed, false);
        struct sim_disk *disk = sim_disk_create(world);
        static uint8_t data[512];
        struct writer w = boot(world, disk, data);
        assert_true(sim_process_enter(w.actor->process, open_now, &w));
        sim_process_die(w.actor->process, SIM_DEATH_POWER);
        w = boot(world, disk, data);
        w.bytes = sizeof data;
        assert_true(sim_process_enter(w.actor->process, read_now, &w));
        kept += w.rc == LEAT_OK;
        lost += w.rc == LEAT_E_NOT_FOUND;
        sim_disk_destroy(&disk);
        sim_world_destroy(&world);
    }
    assert_true(kept && lost);
    assert_int_equal(kept + lost, 50);
}

/* The process is gone inside its own call: what follows the call never runs. */
static void aimed_cut_ends_the_process_inside_the_call(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < 3; phase++) {
        struct sim_world *world = sim_world_create(phase + 1, false);
        struct sim_disk *disk = sim_disk_create(world);
        static uint8_t data[4096];
        struct writer w = boot(world, disk, data);
        assert_true(sim_process_enter(w.actor->process, open_now, &w));
        sim_disk_aim(disk, 1, (enum sim_cut_phase)phase, NULL, NULL);
        w.rc = LEAT_E_INTERNAL;
        w.bytes = sizeof data;
        assert_false(sim_process_enter(w.actor->process, write_now, &w));
        assert_int_equal(w.rc, LEAT_E_INTERNAL);
        assert_false(w.actor->process->alive);
        sim_disk_destroy(&disk);
        sim_world_destroy(&world);
    }
}

/* ---- net ---- */

enum { STREAM_BYTES = 300000 };
struct peer {
    struct sim_actor *actor;
    struct leat_conn *conn;
    struct leat_send send;
    struct leat_iov iov;
    uint8_t *bytes;
    size_t got;
    unsigned closed, sent;
    leat_err sent_rc;
};

static void on_sent(struct leat_send *send, leat_err rc)
{
    struct peer *peer = send->owner;
    peer->sent++;
    peer->sent_rc = rc;
}

static void on_open(void *user, struct leat_conn *conn)
{
    struct peer *peer = user;
    peer->iov = (struct leat_iov){peer->bytes, STREAM_BYTES};
    peer->send =
        (struct leat_send){.iovs = &peer->iov, .iov_count = 1, .on_sent = on_sent, .owner = peer};
    peer->actor->net.send(conn, &peer->send);
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    struct peer *peer = user;
    size_t take = bytes > 3 ? bytes - 3 : bytes; /* leave a rest to be presented again */
    if (peer->got + bytes == STREAM_BYTES) take = bytes;
    assert_memory_equal(data, peer->bytes + peer->got, bytes);
    peer->got += take;
    *want_bytes = 0;
    (void)conn;
    return take;
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    ((struct peer *)user)->closed++;
    (void)conn;
    (void)why;
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

static void *on_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler)
{
    *out_handler = &handler;
    ((struct peer *)acceptor)->conn = conn;
    return acceptor;
}

static void listen_now(void *arg)
{
    struct peer *peer = arg;
    char address[128];
    assert_int_equal(LEAT_OK, peer->actor->net.listen(peer->actor->net.ctx, "a:1", on_accept, peer,
                                                      address, NULL));
}

static void connect_now(void *arg)
{
    struct peer *peer = arg;
    assert_int_equal(LEAT_OK, peer->actor->net.connect(peer->actor->net.ctx, "a:1", &handler, peer,
                                                       &peer->conn));
}

static void stream_arrives_whole_or_as_a_prefix(void **state)
{
    bool reset = *(bool *)*state;
    unsigned half = 0;
    uint8_t *bytes = malloc(STREAM_BYTES);
    for (size_t i = 0; i < STREAM_BYTES; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sim_world *world = sim_world_create(seed, false);
        struct peer a = {.actor = sim_actor_create(sim_process_create(world, "a"), 0)};
        struct peer b = {.actor = sim_actor_create(sim_process_create(world, "b"), 0)};
        a.bytes = b.bytes = bytes;
        sim_actor_register(a.actor, &a, &ops);
        sim_actor_register(b.actor, &b, &ops);
        sim_process_enter(a.actor->process, listen_now, &a);
        sim_process_enter(b.actor->process, connect_now, &b);
        sim_world_run(world, world->now_us + (reset ? seed * 20 : 1), NULL);
        if (reset) sim_net_reset(b.actor->process, 1000);
        sim_world_run(world, world->now_us + 10000000, NULL);
        assert_string_equal(world->failure, "");
        if (!reset || !a.closed) {
            assert_int_equal(a.got, STREAM_BYTES);
            assert_int_equal(b.sent, 1);
            assert_int_equal(b.sent_rc, LEAT_OK);
        } else {
            assert_int_equal(b.closed, 1);
            assert_int_equal(b.sent, 1);
            half += a.got > 0 && a.got < STREAM_BYTES;
        }
        sim_world_destroy(&world);
    }
    free(bytes);
    if (reset) assert_true(half > 0);
}

static void seed_run_twice_gives_one_hash(void **state)
{
    (void)state;
    uint64_t hash[2];
    for (unsigned run = 0; run < 2; run++) {
        struct sim_world *world = sim_world_create(99, false);
        struct two two = {.process = sim_process_create(world, "p")};
        struct counter a = {0}, b = {.to = &a};
        two.a = sim_actor_create(two.process, 0);
        two.b = sim_actor_create(two.process, 1);
        sim_actor_register(two.a, &a, &ops);
        sim_actor_register(two.b, &b, &ops);
        sim_process_enter(two.process, send_all, &two);
        sim_world_run(world, world->now_us + 1000000, NULL);
        hash[run] = world->trace_hash;
        sim_world_destroy(&world);
    }
    assert_int_equal(hash[0], hash[1]);
}

int main(void)
{
    static bool no = false, yes = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail_keeps_order_and_ends_turns),
        cmocka_unit_test(process_that_goes_on_takes_its_mail_at_once),
        cmocka_unit_test(shorter_pause_ends_no_longer_one),
        cmocka_unit_test(actor_woken_for_a_past_time_again_and_again_fails),
        cmocka_unit_test(power_cut_keeps_flushed_and_tears_by_sector),
        cmocka_unit_test(kill_keeps_what_was_written),
        cmocka_unit_test(name_not_flushed_survives_or_not),
        cmocka_unit_test(aimed_cut_ends_the_process_inside_the_call),
        {"stream_undisturbed_arrives_whole", stream_arrives_whole_or_as_a_prefix, NULL, NULL, &no},
        {"stream_reset_arrives_as_a_prefix", stream_arrives_whole_or_as_a_prefix, NULL, NULL, &yes},
        cmocka_unit_test(seed_run_twice_gives_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
