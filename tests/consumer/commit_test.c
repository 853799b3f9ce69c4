/* SPDX-License-Identifier: Apache-2.0 */
/* What a member commits: an engine that is in a group already, made by hand, and a client without a connection, whose
 * commits are answered by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "consumer/engine.h"
#include "consumer/internal.h"
#include "tests/client/fake_server.h"
#include "wire/message.h"

enum { LOGS = 2 };

static struct fake_world world;
static struct leat_consumer_log logs[LOGS];
static struct leat_consumer_engine engine;
static unsigned answers; /* to the application */
static leat_err answered;

static void begin(bool parallel)
{
    fake_init(&world, 1);
    engine = (struct leat_consumer_engine){.env = &world.env,
                                           .client = fake_client(&world, 200000),
                                           .options = {.parallel = parallel},
                                           .in_group = true,
                                           .group_name = "g",
                                           .member = "m",
                                           .group_generation = 3,
                                           .group_state = GROUP_IN,
                                           .logs = logs,
                                           .log_count = LOGS};
    for (uint32_t i = 0; i < LOGS; i++)
        logs[i] = (struct leat_consumer_log){.ref = {5, i, 0}};
    answers = 0;
}

static void end(void)
{
    leat_client_destroy(&engine.client);
    fake_fini(&world);
}

static void on_done(void *arg, leat_err rc, const struct leat_error *error)
{
    (void)arg, (void)error;
    answers++;
    answered = rc;
}

/* The commit is under way, with these rows. */
static void commit_sends(const struct leat_msg_group_offset *rows, uint32_t count)
{
    unsigned before = answers;
    leat_consumer_engine_commit(&engine, on_done, NULL);
    assert_int_equal(answers, before);
    assert_true(engine.commit_busy);
    assert_int_equal(engine.commit_request.kind, LEAT_KIND_GROUP_COMMIT);
    struct leat_msg_reader reader;
    struct leat_msg_group_commit body;
    leat_msg_reader_init(&reader, engine.commit_control, engine.commit_request.control_bytes);
    leat_msg_group_commit_read(&reader, &body);
    assert_int_equal(body.generation, 3);
    assert_int_equal(body.offset_count, count);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_group_offset row;
        leat_msg_group_offset_read(&reader, &row);
        assert_false(reader.failed);
        assert_true(leat_log_ref_equal(row.log, rows[i].log));
        assert_int_equal(row.group, rows[i].group);
        assert_int_equal(row.offset, rows[i].offset);
    }
}

static void commit_is_answered(leat_err rc)
{
    struct leat_error error = {.code = rc};
    unsigned before = answers;
    assert_true(leat_client_withdraw(engine.client, &engine.commit_request));
    engine.commit_request.on_done(&engine.commit_request, rc, NULL, &error);
    assert_int_equal(answers, before + 1);
    assert_int_equal(answered, rc);
    assert_false(engine.commit_busy);
}

/* Nothing is left to commit: the answer is there at once. */
static void all_is_committed(void)
{
    unsigned before = answers;
    leat_consumer_engine_commit(&engine, on_done, NULL);
    assert_int_equal(answers, before + 1);
    assert_int_equal(answered, LEAT_OK);
    assert_false(engine.commit_busy);
}

/* Goal: what is processed while a commit is under way is not part of this commit: the next commit has it. */
static void processed_amid_a_commit_is_committed_next(void **state)
{
    (void)state;
    begin(false);
    all_is_committed();
    leat_consumer_engine_processed(&engine, logs[0].ref, -1, 10);
    leat_consumer_engine_processed(&engine, logs[1].ref, -1, 20);
    commit_sends((struct leat_msg_group_offset[]){{logs[0].ref, -1, 10}, {logs[1].ref, -1, 20}}, 2);
    leat_consumer_engine_processed(&engine, logs[1].ref, -1, 25);
    commit_is_answered(LEAT_OK);
    commit_sends((struct leat_msg_group_offset[]){{logs[1].ref, -1, 25}}, 1);
    commit_is_answered(LEAT_OK);
    all_is_committed();
    end();
}

/* Goal: the next commit has what a failed commit has not stored, in its present place. */
static void failed_commit_is_part_of_the_next(void **state)
{
    (void)state;
    begin(false);
    leat_consumer_engine_processed(&engine, logs[0].ref, -1, 10);
    leat_consumer_engine_processed(&engine, logs[1].ref, -1, 20);
    commit_sends((struct leat_msg_group_offset[]){{logs[0].ref, -1, 10}, {logs[1].ref, -1, 20}}, 2);
    leat_consumer_engine_processed(&engine, logs[1].ref, -1, 25);
    commit_is_answered(LEAT_E_TIMEOUT);
    commit_sends((struct leat_msg_group_offset[]){{logs[0].ref, -1, 10}, {logs[1].ref, -1, 25}}, 2);
    commit_is_answered(LEAT_OK);
    all_is_committed();
    end();
}

/* Goal: a segment group counts as committed once the commit with this segment group is answered, and only then. */
static void finished_amid_a_commit_is_committed_next(void **state)
{
    (void)state;
    begin(true);
    leat_consumer_engine_processed(&engine, logs[0].ref, 0, 10);
    leat_consumer_engine_processed(&engine, logs[0].ref, 2, 30); /* group 0 is done */
    const struct leat_msg_group_offset first[] = {{logs[0].ref, 0, CONSUMER_GROUP_DONE},
                                                  {logs[0].ref, 2, 30}};
    commit_sends(first, 2);
    leat_consumer_engine_processed(&engine, logs[0].ref, 4, 50);
    commit_is_answered(LEAT_E_TIMEOUT);
    const struct leat_msg_group_offset all[] = {{logs[0].ref, 0, CONSUMER_GROUP_DONE},
                                                {logs[0].ref, 2, CONSUMER_GROUP_DONE},
                                                {logs[0].ref, 4, 50}};
    commit_sends(all, 3);
    leat_consumer_engine_processed(&engine, logs[0].ref, 6, 70);
    commit_is_answered(LEAT_OK);
    const struct leat_msg_group_offset last[] = {{logs[0].ref, 4, CONSUMER_GROUP_DONE},
                                                 {logs[0].ref, 6, 70}};
    commit_sends(last, 2);
    commit_is_answered(LEAT_OK);
    all_is_committed();
    end();
}

static void on_error(void *owner, const struct leat_error *error)
{
    (void)owner, (void)error;
}

static void request_is_answered(struct leat_request *request, leat_err rc)
{
    struct leat_error error = {.code = rc};
    assert_true(leat_client_withdraw(engine.client, request));
    request->on_done(request, rc, NULL, &error);
}

/* Goal: an isolated node refuses whatever a member asks of its group. The member then asks for metadata, in which the
 * node names itself as down, and is left. After another refusal the member does not. */
static void refused_by_an_isolated_node_asks_for_metadata(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_AGAIN, LEAT_E_NOT_OWNER};
    for (unsigned i = 0; i < 2; i++) {
        begin(false);
        leat_consumer_engine_processed(&engine, logs[0].ref, -1, 10);
        commit_sends((struct leat_msg_group_offset[]){{logs[0].ref, -1, 10}}, 1);
        commit_is_answered(codes[i]);
        assert_int_equal(engine.wants_refresh, i == 1);
        assert_int_equal(engine.group_state, GROUP_IN);
        engine.wants_refresh = false;
        engine.options.session_ms = 6000;
        leat_consumer_group_turn(&engine);
        request_is_answered(&engine.heartbeat_request, codes[i]);
        assert_int_equal(engine.wants_refresh, i == 1);
        assert_int_equal(engine.group_state, GROUP_IN);
        end();
        begin(false);
        engine.group_state = GROUP_NONE;
        leat_list_init(&engine.ready);
        engine.events.on_error = on_error;
        leat_consumer_group_turn(&engine);
        assert_int_equal(engine.group_state, GROUP_JOINING);
        engine.logs = NULL; /* they are on no heap */
        engine.log_count = 0;
        request_is_answered(&engine.group_request, codes[i]);
        assert_int_equal(engine.group_state, GROUP_NONE);
        assert_int_equal(engine.wants_refresh, i == 1);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processed_amid_a_commit_is_committed_next),
        cmocka_unit_test(failed_commit_is_part_of_the_next),
        cmocka_unit_test(finished_amid_a_commit_is_committed_next),
        cmocka_unit_test(refused_by_an_isolated_node_asks_for_metadata),
    };
    return cmocka_run_group_tests_name("consumer commit", tests, NULL, NULL);
}
