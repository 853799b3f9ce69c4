/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided writes in the simulated world: the transport suite, and what deaths leave behind. */
#include "tests/sim/rmem.h"
#include "tests/transport/suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SUITE_ROUNDS = 3, SEEDS = 200, BYTES = 40000 };

static uint64_t seed;

/* ---- a rig: two machines, an actor on each ---- */

struct sim_rig {
    struct transport_rig rig;
    struct sim_world *world;
    struct sim_rmem_host *host;
    struct sim_actor *actors[2];
    struct leat_env writer_env;
    struct leat_post post; /* of writer_env: from one machine to the other */
    uint8_t *memory;
};

struct call {
    void (*fn)(void *arg);
    void *arg;
    bool done;
};

static void call_run(struct sim_world *world, struct sim_event *event)
{
    struct call *call = event->a;
    call->fn(call->arg);
    call->done = true;
    (void)world;
}

static void rig_call(void *ctx, unsigned actor, void (*fn)(void *arg), void *arg)
{
    struct sim_rig *sim = ctx;
    struct call call = {fn, arg, false};
    sim_actor_post(sim->actors[actor], 0, call_run, &call);
    while (!call.done)
        sim_world_run(sim->world, sim->world->now_us + 1000, &call.done);
}

struct question {
    bool (*done)(void *arg);
    void *arg;
    bool answer;
};

static void ask(void *arg)
{
    struct question *question = arg;
    question->answer = question->done(question->arg);
}

static void rig_wait(void *ctx, unsigned actor, bool (*done)(void *arg), void *arg)
{
    struct sim_rig *sim = ctx;
    uint64_t end_us = sim->world->now_us + 60ull * 1000000;
    struct question question = {done, arg, false};
    while (rig_call(ctx, actor, ask, &question), !question.answer)
        RIG_CHECK(sim->world->now_us < end_us);
}

static void mail_deliver(struct sim_world *world, struct sim_event *event)
{
    struct leat_mail *mail = event->a;
    mail->deliver(event->actor->self, mail);
    (void)world;
}

static void mail_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct sim_rig *sim = ctx;
    sim_actor_post(sim->actors[to], sim_rng_between(&sim->world->work, 1, 100), mail_deliver, mail);
}

static void rig_notify(void *ctx)
{
    (void)ctx;
}

static uint8_t *rig_memory(void *ctx, size_t bytes)
{
    struct sim_rig *sim = ctx;
    free(sim->memory);
    return sim->memory = calloc(1, bytes);
}

static void on_wake(void *self)
{
    (void)self;
}
static const struct leat_actor_ops idle = {.on_wake = on_wake};

static struct sim_actor *machine(struct sim_world *world, const char *name, unsigned number)
{
    struct sim_process *process = sim_process_create(world, name);
    snprintf(process->host, sizeof process->host, "%s", name);
    struct sim_actor *actor = sim_actor_create(process, number);
    sim_actor_register(actor, actor, &idle);
    return actor;
}

static struct sim_rig *rig_make(enum leat_rmem_kind kind)
{
    struct sim_rig *sim = calloc(1, sizeof *sim);
    RIG_CHECK(sim != NULL);
    sim->world = sim_world_create(++seed, false);
    sim->actors[RIG_HOST] = machine(sim->world, "backup", RIG_HOST);
    sim->actors[RIG_WRITER] = machine(sim->world, "primary", RIG_WRITER);
    sim->host = sim_rmem_host_create(sim->world, "backup");
    sim->actors[RIG_HOST]->process->rmem_host = sim->host;
    sim->post = (struct leat_post){sim, mail_send, RIG_WRITER};
    sim->writer_env = sim->actors[RIG_WRITER]->env;
    sim->writer_env.post = &sim->post;
    sim->rig = (struct transport_rig){
        .ctx = sim,
        .host = sim_rmem_host_attach(sim->host, sim->actors[RIG_HOST], 1u << kind),
        .writer = sim_rmem_create(sim->actors[RIG_WRITER], kind),
        .writer_env = &sim->writer_env,
        .call = rig_call,
        .wait = rig_wait,
        .notify = rig_notify,
        .memory = rig_memory,
    };
    return sim;
}

static struct transport_rig *shm_make(void)
{
    return &rig_make(LEAT_RMEM_SHM)->rig;
}

static struct transport_rig *verbs_make(void)
{
    return &rig_make(LEAT_RMEM_VERBS)->rig;
}

static void rig_drop(struct transport_rig *rig)
{
    struct sim_rig *sim = rig->ctx;
    sim_world_destroy(&sim->world);
    free(sim->memory);
    free(sim);
}

/* ---- one write under way ---- */

struct one {
    struct sim_rig *sim;
    struct leat_rmem_arena *arena;
    struct leat_rmem_grow grow;
    struct leat_rmem_grant grant;
    struct leat_rmem_target *target;
    struct leat_rmem_write write;
    struct leat_iov iov;
    uint8_t bytes[BYTES];
    bool grown, attached, failed, ended;
    leat_err rc;
    unsigned inherited;
};

static void on_grown(struct leat_rmem_grow *grow)
{
    ((struct one *)grow->owner)->grown = grow->rc == LEAT_OK;
}
static void open_now(void *arg)
{
    struct one *one = arg;
    const struct leat_rmem_host *host = one->sim->rig.host;
    struct leat_error error;
    assert_int_equal(
        LEAT_OK, host->open(host->ctx, "primary", 1, LEAT_ARENA_STEP_BYTES, &one->arena, &error));
    one->grow = (struct leat_rmem_grow){.on_grown = on_grown, .owner = one};
    host->grow(host->ctx, one->arena, &one->grow);
}
static bool is_grown(void *arg)
{
    return ((struct one *)arg)->grown;
}
static void on_attached(void *user, struct leat_rmem_target *target)
{
    ((struct one *)user)->attached = true;
    (void)target;
}
static void on_failed(void *user, struct leat_rmem_target *target, const struct leat_error *error)
{
    struct one *one = user;
    assert_true(one->ended && error->text[0]);
    one->failed = true;
    (void)target;
}
static const struct leat_rmem_target_handler handler = {on_attached, on_failed};
static void grant_now(void *arg)
{
    struct one *one = arg;
    one->sim->rig.host->grant(one->sim->rig.host->ctx, one->arena, &one->grant);
}
static void attach_granted(void *arg)
{
    struct one *one = arg;
    const struct leat_rmem *writer = one->sim->rig.writer;
    assert_int_equal(
        LEAT_OK, writer->attach(writer->ctx, 0, &one->grant, &handler, one, &one->target, NULL));
}
static bool is_attached(void *arg)
{
    return ((struct one *)arg)->attached;
}
static void on_done(struct leat_rmem_write *write, leat_err rc)
{
    struct one *one = write->owner;
    assert_false(one->ended);
    one->ended = true;
    one->rc = rc;
}
static void write_now(void *arg)
{
    struct one *one = arg;
    one->iov = (struct leat_iov){one->bytes, BYTES};
    one->write = (struct leat_rmem_write){
        .iovs = &one->iov, .iov_count = 1, .offset = 100, .on_done = on_done, .owner = one};
    assert_int_equal(LEAT_OK, leat_rmem_write(one->target, &one->write));
}
static bool is_ended(void *arg)
{
    return ((struct one *)arg)->ended;
}
static void revoke_now(void *arg)
{
    struct one *one = arg;
    one->sim->rig.host->revoke(one->sim->rig.host->ctx, one->arena);
}

/* Attached, and the write has been under way for a while. */
static struct one *under_way(enum leat_rmem_kind kind)
{
    struct one *one = calloc(1, sizeof *one);
    assert_non_null(one);
    one->sim = rig_make(kind);
    for (size_t i = 0; i < BYTES; i++)
        one->bytes[i] = (uint8_t)(i % 251 + 1);
    rig_call(one->sim, RIG_HOST, open_now, one);
    rig_wait(one->sim, RIG_HOST, is_grown, one);
    rig_call(one->sim, RIG_HOST, grant_now, one);
    rig_call(one->sim, RIG_WRITER, attach_granted, one);
    rig_wait(one->sim, RIG_WRITER, is_attached, one);
    rig_call(one->sim, RIG_WRITER, write_now, one);
    sim_world_run(one->sim->world,
                  one->sim->world->now_us + sim_rng_below(&one->sim->world->work, 120), NULL);
    return one;
}

static void one_drop(struct one *one)
{
    rig_drop(&one->sim->rig);
    free(one);
}

/* How many bytes of the write are in the arena; none may be another's. */
static size_t arrived(const struct one *one)
{
    size_t count = 0;
    for (size_t i = 0; i < BYTES; i++) {
        uint8_t byte = one->arena->base[100 + i];
        assert_true(byte == 0 || byte == one->bytes[i]);
        count += byte != 0;
    }
    return count;
}

static void pass(struct one *one, uint64_t us)
{
    sim_world_run(one->sim->world, one->sim->world->now_us + us, NULL);
}

/* ---- tests ---- */

static void writer_killed_leaves_all_part_or_nothing(void **state)
{
    enum leat_rmem_kind kind = *(const enum leat_rmem_kind *)*state;
    unsigned none = 0, part = 0, all = 0, late = 0;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct one *one = under_way(kind);
        sim_process_die(one->sim->actors[RIG_WRITER]->process, SIM_DEATH_KILL);
        size_t before = arrived(one);
        pass(one, 100000);
        size_t after = arrived(one);
        late += after > before;
        none += after == 0;
        part += after > 0 && after < BYTES;
        all += after == BYTES;
        one_drop(one);
    }
    assert_true(none && part && all);
    assert_int_equal(late > 0, kind == LEAT_RMEM_VERBS); /* a dead processor stores nothing */
}

static void nothing_changes_after_a_fence_over_verbs(void **state)
{
    (void)state;
    unsigned torn = 0;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct one *one = under_way(LEAT_RMEM_VERBS);
        if (i % 2) sim_process_die(one->sim->actors[RIG_WRITER]->process, SIM_DEATH_KILL);
        rig_call(one->sim, RIG_HOST, revoke_now, one);
        size_t before = arrived(one);
        pass(one, 100000);
        assert_int_equal(arrived(one), before);
        torn += before > 0 && before < BYTES;
        one_drop(one);
    }
    assert_true(torn);
}

/* It may store after the fence; then it never hears that the write is safe. */
static void stopped_shm_writer_stores_after_the_fence_and_is_not_acked(void **state)
{
    (void)state;
    unsigned late = 0;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct one *one = under_way(LEAT_RMEM_SHM);
        struct sim_process *writer = one->sim->actors[RIG_WRITER]->process;
        sim_process_pause(writer, one->sim->world->now_us + 50000);
        rig_call(one->sim, RIG_HOST, revoke_now, one);
        size_t before = arrived(one);
        rig_wait(one->sim, RIG_WRITER, is_ended, one);
        if (one->rc == LEAT_OK) assert_int_equal(before, BYTES);
        late += arrived(one) > before;
        one_drop(one);
    }
    assert_true(late);
}

static void count_inherited(void *arg, struct leat_rmem_arena *arena)
{
    struct one *one = arg;
    assert_true(arena == one->arena && arena->inherited && arena->revoked);
    one->inherited++;
}
static void each_inherited(void *arg)
{
    struct one *one = arg;
    one->sim->rig.host->each_inherited(one->sim->rig.host->ctx, count_inherited, one);
}

static void host_death_keeps_memory_but_not_through_a_power_cut(void **state)
{
    enum sim_death death = *(const enum sim_death *)*state;
    for (unsigned i = 0; i < 20; i++) {
        struct one *one = under_way(LEAT_RMEM_VERBS);
        struct sim_rig *sim = one->sim;
        rig_wait(sim, RIG_WRITER, is_ended, one);
        assert_int_equal(one->rc, LEAT_OK);
        sim_process_die(sim->actors[RIG_HOST]->process, death);
        sim->actors[RIG_HOST] = machine(sim->world, "backup", RIG_HOST);
        sim->rig.host =
            sim_rmem_host_attach(sim->host, sim->actors[RIG_HOST], 1u << LEAT_RMEM_VERBS);
        rig_call(sim, RIG_HOST, each_inherited, one);
        assert_int_equal(one->inherited, death == SIM_DEATH_KILL);
        assert_int_equal(arrived(one), death == SIM_DEATH_KILL ? BYTES : 0);
        one->ended = false;
        rig_call(sim, RIG_WRITER, write_now, one);
        rig_wait(sim, RIG_WRITER, is_ended, one);
        assert_int_not_equal(one->rc, LEAT_OK);
        one_drop(one);
    }
}

static void cut_between_machines_delays_or_fails_a_write(void **state)
{
    (void)state;
    unsigned ok = 0, failed = 0;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct one *one = under_way(LEAT_RMEM_VERBS);
        struct sim_rig *sim = one->sim;
        rig_wait(sim, RIG_WRITER, is_ended, one);
        uint64_t heals_us = sim->world->now_us + 100000;
        sim_net_cut(sim->world, i % 2 ? "backup" : "primary", i % 2 ? "primary" : "backup",
                    heals_us);
        one->ended = false;
        rig_call(sim, RIG_WRITER, write_now, one);
        rig_wait(sim, RIG_WRITER, is_ended, one);
        assert_true(sim->world->now_us >= heals_us);
        ok += one->rc == LEAT_OK;
        failed += one->rc != LEAT_OK;
        one_drop(one);
    }
    assert_true(ok && failed);
}

static void failed_write_may_have_arrived_and_ends_the_target(void **state)
{
    (void)state;
    unsigned arrived_all = 0, arrived_none = 0;
    for (unsigned i = 0; i < 50; i++) {
        struct one *one = under_way(LEAT_RMEM_VERBS);
        struct sim_rig *sim = one->sim;
        rig_wait(sim, RIG_WRITER, is_ended, one);
        memset(one->arena->base, 0, BYTES + 100);
        sim->world->rmem_error_per_mille = 1000;
        one->ended = false;
        rig_call(sim, RIG_WRITER, write_now, one);
        rig_wait(sim, RIG_WRITER, is_ended, one);
        assert_int_not_equal(one->rc, LEAT_OK);
        pass(one, 1000);
        assert_true(one->failed);
        arrived_all += arrived(one) == BYTES;
        arrived_none += arrived(one) == 0;
        one_drop(one);
    }
    assert_true(arrived_all && arrived_none);
}

int main(void)
{
    static const struct transport_family shm = {"simulated shm", LEAT_RMEM_SHM, shm_make, rig_drop,
                                                40};
    static const struct transport_family verbs = {"simulated verbs", LEAT_RMEM_VERBS, verbs_make,
                                                  rig_drop, 40};
    static enum leat_rmem_kind kinds[] = {LEAT_RMEM_SHM, LEAT_RMEM_VERBS};
    static enum sim_death deaths[] = {SIM_DEATH_KILL, SIM_DEATH_POWER};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(writer_killed_leaves_all_part_or_nothing, &kinds[0]),
        cmocka_unit_test_prestate(writer_killed_leaves_all_part_or_nothing, &kinds[1]),
        cmocka_unit_test(nothing_changes_after_a_fence_over_verbs),
        cmocka_unit_test(stopped_shm_writer_stores_after_the_fence_and_is_not_acked),
        cmocka_unit_test_prestate(host_death_keeps_memory_but_not_through_a_power_cut, &deaths[0]),
        cmocka_unit_test_prestate(host_death_keeps_memory_but_not_through_a_power_cut, &deaths[1]),
        cmocka_unit_test(cut_between_machines_delays_or_fails_a_write),
        cmocka_unit_test(failed_write_may_have_arrived_and_ends_the_target),
    };
    int failed = 0;
    for (unsigned round = 0; round < SUITE_ROUNDS && !failed; round++)
        failed = transport_suite_run(&shm) + transport_suite_run(&verbs);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
