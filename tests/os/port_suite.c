/* SPDX-License-Identifier: Apache-2.0 */
/* Port suite: mail, clock, random, disk. */
#include "tests/os/port_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- an actor that runs a script ---- */
struct script {
    struct port_rig *rig;
    const struct leat_env *env;
    void *test;
    void (*start)(struct script *script);
    void (*wake)(struct script *script);
    unsigned callbacks, turns; /* of the test's choosing; on_turn_end counted */
    bool in_call;              /* inside a call to a port: no completion may run */
};

static void script_start(void *actor)
{
    struct script *script = actor;
    if (script->start) script->start(script);
}
static void script_wake(void *actor)
{
    struct script *script = actor;
    if (script->wake) script->wake(script);
}
static void script_turn_end(void *actor)
{
    ((struct script *)actor)->turns++;
}
static const struct leat_actor_ops script_ops = {.on_wake = script_wake,
                                                 .on_turn_end = script_turn_end};

static struct script *script_attach(struct port_rig *rig, struct script *script, unsigned number)
{
    script->rig = rig;
    script->env = rig->env(rig->ctx, number);
    rig->attach(rig->ctx, number, script, &script_ops, script_start);
    return script;
}

static void script_finish(struct script *script)
{
    script->rig->finish(script->rig->ctx);
}

/* ---- mail ---- */
enum { ORDER_MAILS = 5000 };
struct order_mail {
    struct leat_mail mail;
    unsigned sender, number;
};
struct order_test {
    struct script left, right, disk;
    struct order_mail from[3][ORDER_MAILS];
    unsigned next[3], total;
};

static void order_deliver(void *actor, struct leat_mail *mail)
{
    struct script *script = actor;
    struct order_test *test = script->test;
    const struct order_mail *order = (const struct order_mail *)(const void *)mail;
    PORT_CHECK(script == &test->disk && !script->in_call);
    PORT_CHECK(order->number == test->next[order->sender]);
    test->next[order->sender]++;
    if (++test->total == 3 * ORDER_MAILS) script_finish(script);
}

static void order_send(struct script *script, unsigned sender)
{
    struct order_test *test = script->test;
    script->in_call = true;
    for (unsigned i = 0; i < ORDER_MAILS; i++) {
        struct order_mail *order = &test->from[sender][i];
        order->sender = sender;
        order->number = i;
        order->mail.deliver = order_deliver;
        script->env->post->send(script->env->post->ctx, PORT_DISK, &order->mail);
    }
    script->in_call = false;
}
static void order_left(struct script *script)
{
    order_send(script, 0);
}
static void order_right(struct script *script)
{
    order_send(script, 1);
}
static void order_self(struct script *script)
{
    PORT_CHECK(script->env->post->self == PORT_DISK);
    order_send(script, 2);
}

/* Two others and the receiver itself send at once: each sender's order must hold. */
static void mail_three_senders_order_kept(void **state)
{
    const struct port_family *family = *state;
    struct port_rig *rig = family->make();
    struct order_test *test = calloc(1, sizeof *test);
    test->left = (struct script){.test = test, .start = order_left};
    test->right = (struct script){.test = test, .start = order_right};
    test->disk = (struct script){.test = test, .start = order_self};
    script_attach(rig, &test->left, PORT_LEFT);
    script_attach(rig, &test->right, PORT_RIGHT);
    script_attach(rig, &test->disk, PORT_DISK);
    rig->run(rig->ctx);
    assert_int_equal(test->total, 3 * ORDER_MAILS);
    assert_true(test->disk.turns > 0);
    family->drop(rig);
    free(test);
}

enum { PING_ROUNDS = 20000 };
struct ping_test {
    struct script left, right, disk;
    struct leat_mail ball;
    unsigned rounds;
};
static void ping_deliver(void *actor, struct leat_mail *mail)
{
    struct script *script = actor;
    struct ping_test *test = script->test;
    if (++test->rounds == PING_ROUNDS) {
        script_finish(script);
        return;
    }
    unsigned to = script == &test->left ? PORT_RIGHT : PORT_LEFT;
    script->env->post->send(script->env->post->ctx, to, mail);
}
static void ping_start(struct script *script)
{
    struct ping_test *test = script->test;
    test->ball.deliver = ping_deliver;
    script->env->post->send(script->env->post->ctx, PORT_RIGHT, &test->ball);
}

/* Each side sleeps while the other has the ball: one lost wake-up and it never ends. */
static void mail_ping_pong_loses_no_wake_up(void **state)
{
    const struct port_family *family = *state;
    struct port_rig *rig = family->make();
    struct ping_test test = {0};
    test.left = (struct script){.test = &test, .start = ping_start};
    test.right = test.disk = (struct script){.test = &test};
    script_attach(rig, &test.left, PORT_LEFT);
    script_attach(rig, &test.right, PORT_RIGHT);
    script_attach(rig, &test.disk, PORT_DISK);
    rig->run(rig->ctx);
    assert_int_equal(test.rounds, PING_ROUNDS);
    family->drop(rig);
}

/* ---- clock ---- */
struct clock_test {
    struct script left, right, disk;
    uint64_t started_us, wanted_us;
    unsigned wakes;
};
static uint64_t now_us(struct script *script)
{
    return script->env->clock->now_us(script->env->clock->ctx);
}
static void clock_ask(struct script *script, uint64_t at_us)
{
    script->env->clock->wake_at(script->env->clock->ctx, at_us);
}
static void clock_wake(struct script *script)
{
    struct clock_test *test = script->test;
    PORT_CHECK(now_us(script) >= test->wanted_us);
    PORT_CHECK(!script->in_call);
    if (++test->wakes == 20) {
        /* Taken back: were it not, the wait for finish() by another request would see it. */
        clock_ask(script, now_us(script) + 1000);
        clock_ask(script, UINT64_MAX);
        script_finish(script);
        return;
    }
    test->wanted_us = now_us(script) + 300u * test->wakes;
    script->in_call = true;
    clock_ask(script, test->wanted_us + 50000000); /* replaced at once */
    clock_ask(script, test->wakes % 5 == 0 ? 0 : test->wanted_us);
    if (test->wakes % 5 == 0) test->wanted_us = 0; /* the past means now, but later */
    script->in_call = false;
}
static void clock_start(struct script *script)
{
    struct clock_test *test = script->test;
    test->started_us = now_us(script);
    test->wanted_us = test->started_us + 2500;
    clock_ask(script, test->wanted_us);
    PORT_CHECK(script->env->clock->wall_ms(script->env->clock->ctx) > 0);
}

static void clock_wakes_at_or_after_never_early(void **state)
{
    const struct port_family *family = *state;
    struct port_rig *rig = family->make();
    struct clock_test test = {0};
    test.left = (struct script){.test = &test, .start = clock_start, .wake = clock_wake};
    test.right = test.disk = (struct script){.test = &test};
    script_attach(rig, &test.left, PORT_LEFT);
    script_attach(rig, &test.right, PORT_RIGHT);
    script_attach(rig, &test.disk, PORT_DISK);
    rig->run(rig->ctx);
    assert_int_equal(test.wakes, 20);
    assert_true(test.left.turns >= 20);
    const struct leat_random *random = test.left.env->random;
    assert_true(random->next(random->ctx) != random->next(random->ctx));
    uint8_t secrets[2][37] = {{0}};
    for (unsigned i = 0; i < 2; i++)
        random->secret(random->ctx, secrets[i], sizeof secrets[i]);
    assert_memory_not_equal(secrets[0], secrets[1], sizeof secrets[0]);
    uint8_t last = 0; /* of 37: no multiple of what a generator gives at once */
    for (unsigned tries = 0; tries < 100 && last == 0; tries++) {
        random->secret(random->ctx, secrets[0], sizeof secrets[0]);
        last = secrets[0][36];
    }
    assert_true(last != 0);
    family->drop(rig);
}

/* ---- disk ---- */
enum { BLOCK = 4096, BLOCKS = 64 };
struct disk_test {
    struct script left, right, disk;
    struct leat_file *file;
    struct leat_disk_io write[BLOCKS], sync, read, zero, zero_read, core_read[8];
    struct leat_disk_io beside[4]; /* two chains of a write and a sync */
    unsigned beside_done;
    struct leat_mail to_left, back;
    uint8_t *out, *in;
    unsigned done, core_done;
    char listed[256];
};

static void disk_submit(struct script *script, struct leat_disk_io *io)
{
    script->in_call = true;
    script->env->disk->submit(script->env->disk->ctx, io);
    script->in_call = false;
}

static void list_each(void *arg, const char *name)
{
    struct disk_test *test = arg;
    size_t used = strlen(test->listed);
    snprintf(test->listed + used, sizeof test->listed - used, "%s ", name);
}

static void disk_finish(struct script *script);

/* Two chains beside the queue: each operation is told of, and all has happened then. */
static void beside_read_done(struct leat_disk_io *io)
{
    struct script *script = io->owner;
    struct disk_test *test = script->test;
    PORT_CHECK(!script->in_call && io->rc == LEAT_OK && io->done_bytes == io->bytes);
    PORT_CHECK(memcmp(test->in, test->out, BLOCK * BLOCKS) == 0);
    disk_finish(script);
}

static void beside_done(struct leat_disk_io *io)
{
    struct script *script = io->owner;
    struct disk_test *test = script->test;
    PORT_CHECK(!script->in_call && io->rc == LEAT_OK);
    PORT_CHECK(io->kind == LEAT_DISK_SYNC || io->done_bytes == io->bytes);
    if (++test->beside_done < 4) return;
    test->zero_read.on_done = beside_read_done;
    disk_submit(script, &test->zero_read);
}

static void disk_beside(struct script *script)
{
    struct disk_test *test = script->test;
    for (int i = 0; i < 4; i++) {
        test->beside[i] = (struct leat_disk_io){.kind = i % 2 ? LEAT_DISK_SYNC : LEAT_DISK_WRITE,
                                                .file = test->file,
                                                .on_done = beside_done,
                                                .owner = script,
                                                .beside = true,
                                                .then = i % 2 ? NULL : &test->beside[i + 1]};
        if (i % 2) continue;
        test->beside[i].offset = (uint64_t)BLOCK * (2 + (unsigned)i);
        test->beside[i].buffer = test->out + BLOCK * (2 + i);
        test->beside[i].bytes = BLOCK * 2;
        memset(test->beside[i].buffer, 'b' + i, BLOCK * 2);
    }
    disk_submit(script, &test->beside[0]);
    disk_submit(script, &test->beside[2]);
}

/* Zeros over what was written, beside nothing else. */
static void zero_done(struct leat_disk_io *io)
{
    struct script *script = io->owner;
    struct disk_test *test = script->test;
    PORT_CHECK(!script->in_call && io->rc == LEAT_OK && io->done_bytes == io->bytes);
    if (io == &test->zero) {
        test->zero_read = (struct leat_disk_io){.kind = LEAT_DISK_READ,
                                                .file = test->file,
                                                .buffer = test->in,
                                                .bytes = BLOCK * BLOCKS,
                                                .on_done = zero_done,
                                                .owner = script};
        disk_submit(script, &test->zero_read);
        return;
    }
    memset(test->out + BLOCK * 2, 0, BLOCK * 3);
    PORT_CHECK(memcmp(test->in, test->out, BLOCK * BLOCKS) == 0);
    disk_beside(script);
}

static void disk_zero(void *actor, struct leat_mail *mail)
{
    struct script *script = actor;
    struct disk_test *test = script->test;
    (void)mail;
    test->zero = (struct leat_disk_io){.kind = LEAT_DISK_ZERO,
                                       .file = test->file,
                                       .offset = BLOCK * 2,
                                       .bytes = BLOCK * 3,
                                       .on_done = zero_done,
                                       .owner = script};
    disk_submit(script, &test->zero);
}

static void disk_finish(struct script *script)
{
    struct disk_test *test = script->test;
    const struct leat_disk *disk = script->env->disk;
    uint64_t bytes = 0;
    struct leat_error error;
    PORT_CHECK(disk->size(disk->ctx, test->file, &bytes) == LEAT_OK && bytes == BLOCK * BLOCKS);
    PORT_CHECK(disk->allocate(disk->ctx, test->file, BLOCK * BLOCKS * 2) == LEAT_OK);
    PORT_CHECK(disk->size(disk->ctx, test->file, &bytes) == LEAT_OK && bytes == BLOCK * BLOCKS * 2);
    PORT_CHECK(disk->truncate(disk->ctx, test->file, BLOCK) == LEAT_OK);
    PORT_CHECK(disk->size(disk->ctx, test->file, &bytes) == LEAT_OK && bytes == BLOCK);
    disk->close(disk->ctx, test->file);
    PORT_CHECK(disk->rename(disk->ctx, "sub/b", "sub/c") == LEAT_OK);
    struct leat_file *file;
    PORT_CHECK(disk->open(disk->ctx, "sub/b", 0, &file, &error) == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->open(disk->ctx, "sub/c", LEAT_OPEN_READ, &file, &error) == LEAT_OK);
    disk->close(disk->ctx, file);
    PORT_CHECK(disk->open(disk->ctx, "sub/a", LEAT_OPEN_CREATE | LEAT_OPEN_EXCLUSIVE, &file,
                          &error) == LEAT_OK);
    disk->close(disk->ctx, file);
    PORT_CHECK(disk->open(disk->ctx, "sub/a", LEAT_OPEN_CREATE | LEAT_OPEN_EXCLUSIVE, &file,
                          &error) == LEAT_E_EXISTS);
    PORT_CHECK(disk->list(disk->ctx, "sub", list_each, test) == LEAT_OK);
    PORT_CHECK(disk->remove(disk->ctx, "sub/a") == LEAT_OK);
    PORT_CHECK(disk->remove(disk->ctx, "sub/a") == LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->sync_dir(disk->ctx, "sub") == LEAT_OK);
    PORT_CHECK(disk->space(disk->ctx, &bytes) == LEAT_OK && bytes > 0);
    script_finish(script);
}

static void core_read_done(struct leat_disk_io *io)
{
    struct script *script = io->owner;
    struct disk_test *test = script->test;
    PORT_CHECK(script == &test->left && !script->in_call);
    PORT_CHECK(io->rc == LEAT_OK && io->done_bytes == BLOCK);
    PORT_CHECK(memcmp(io->buffer, test->out + io->offset, BLOCK) == 0);
    if (++test->core_done < 8) return;
    test->back.deliver = disk_zero;
    script->env->post->send(script->env->post->ctx, PORT_DISK, &test->back);
}

/* The file is the store's; a core reads it through its own port. */
static void core_reads(void *actor, struct leat_mail *mail)
{
    struct script *script = actor;
    struct disk_test *test = script->test;
    (void)mail;
    for (unsigned i = 0; i < 8; i++) {
        test->core_read[i] = (struct leat_disk_io){
            .kind = LEAT_DISK_READ,
            .file = test->file,
            .offset = BLOCK * 7 * i,
            .buffer = test->in + BLOCK * i,
            .bytes = BLOCK,
            .on_done = core_read_done,
            .owner = script,
        };
        disk_submit(script, &test->core_read[i]);
    }
}

static void disk_done(struct leat_disk_io *io)
{
    struct script *script = io->owner;
    struct disk_test *test = script->test;
    PORT_CHECK(!script->in_call);
    PORT_CHECK(io->rc == LEAT_OK);
    test->done++;
    if (io->kind == LEAT_DISK_WRITE) {
        PORT_CHECK(io->done_bytes == io->bytes);
        PORT_CHECK(io - test->write == (ptrdiff_t)test->done - 1 || test->done > BLOCKS);
    }
    if (io == &test->sync) PORT_CHECK(test->done >= BLOCKS + 1);
    if (io == &test->read) {
        /* Asked for one block more than there is. */
        PORT_CHECK(io->done_bytes == BLOCK * BLOCKS);
        PORT_CHECK(memcmp(test->in, test->out, BLOCK * BLOCKS) == 0);
        test->to_left.deliver = core_reads;
        script->env->post->send(script->env->post->ctx, PORT_LEFT, &test->to_left);
    }
    if (io == &test->sync) disk_submit(script, &test->read);
}

static void disk_start(struct script *script)
{
    struct disk_test *test = script->test;
    const struct leat_disk *disk = script->env->disk;
    struct leat_error error;
    PORT_CHECK(disk->make_dir(disk->ctx, "sub") == LEAT_OK);
    PORT_CHECK(disk->make_dir(disk->ctx, "sub") == LEAT_OK);
    PORT_CHECK(disk->open(disk->ctx, "sub/b", LEAT_OPEN_READ, &test->file, &error) ==
               LEAT_E_NOT_FOUND);
    PORT_CHECK(disk->open(disk->ctx, "sub/b", LEAT_OPEN_CREATE | LEAT_OPEN_DIRECT, &test->file,
                          &error) == LEAT_OK);
    for (unsigned i = 0; i < BLOCKS; i++) {
        memset(test->out + BLOCK * i, (int)i + 1, BLOCK);
        test->write[i] = (struct leat_disk_io){
            .kind = LEAT_DISK_WRITE,
            .file = test->file,
            .offset = BLOCK * i,
            .buffer = test->out + BLOCK * i,
            .bytes = BLOCK,
            .on_done = disk_done,
            .owner = script,
        };
        disk_submit(script, &test->write[i]);
    }
    test->sync = (struct leat_disk_io){
        .kind = LEAT_DISK_SYNC, .file = test->file, .on_done = disk_done, .owner = script};
    test->read = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = test->file,
        .buffer = test->in,
        .bytes = BLOCK * (BLOCKS + 1),
        .on_done = disk_done,
        .owner = script,
    };
    disk_submit(script, &test->sync);
}

static void disk_written_synced_read_back_by_store_and_core(void **state)
{
    const struct port_family *family = *state;
    struct port_rig *rig = family->make();
    struct disk_test *test = calloc(1, sizeof *test);
    test->out = aligned_alloc(BLOCK, BLOCK * (BLOCKS + 1));
    test->in = aligned_alloc(BLOCK, BLOCK * (BLOCKS + 1));
    test->left = test->right = (struct script){.test = test};
    test->disk = (struct script){.test = test, .start = disk_start};
    script_attach(rig, &test->left, PORT_LEFT);
    script_attach(rig, &test->right, PORT_RIGHT);
    script_attach(rig, &test->disk, PORT_DISK);
    rig->run(rig->ctx);
    assert_int_equal(test->done, BLOCKS + 2);
    assert_int_equal(test->core_done, 8);
    assert_string_equal(test->listed, "a c ");
    family->drop(rig);
    free(test->out);
    free(test->in);
    free(test);
}

int port_suite_run(const struct port_family *family)
{
    void *state = (void *)(uintptr_t)family;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(mail_three_senders_order_kept, state),
        cmocka_unit_test_prestate(mail_ping_pong_loses_no_wake_up, state),
        cmocka_unit_test_prestate(clock_wakes_at_or_after_never_early, state),
        cmocka_unit_test_prestate(disk_written_synced_read_back_by_store_and_core, state),
    };
    int failed = cmocka_run_group_tests_name("ports", tests, NULL, NULL);
    return failed + port_suite_net_run(family) + port_suite_net_ends_run(family);
}
