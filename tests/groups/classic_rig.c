/* SPDX-License-Identifier: Apache-2.0 */
#include "classic_rig.h"
#include "groups/internal.h"

struct leat_msg_string text(const char *chars)
{
    return (struct leat_msg_string){chars, (uint32_t)strlen(chars)};
}

struct ask_group *ask_new(enum leat_groups_kind kind, const char *member, uint32_t generation)
{
    struct ask_group *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->r.kind = kind;
    a->r.classic = &a->call;
    a->r.generation = generation;
    a->r.answer_bytes_max = SIZE_MAX;
    snprintf(a->r.group, sizeof a->r.group, "readers");
    snprintf(a->r.member, sizeof a->r.member, "%s", member);
    return a;
}

struct ask_group *join_new(const char *member, const char *instance, const char *metadata)
{
    struct ask_group *a = ask_new(LEAT_GROUPS_CLASSIC_JOIN, member, 0);
    a->r.session_ms = 2000;
    a->protocol = (struct leat_classic_protocol){text("range"), text(metadata)};
    a->call = (struct leat_classic_call){.instance = text(instance),
                                         .client = text("tester"),
                                         .host = text("/127.0.0.1"),
                                         .rebalance_ms = 4000,
                                         .needs_id = true,
                                         .can_skip = true,
                                         .protocols = &a->protocol,
                                         .protocol_count = 1,
                                         .protocol_type = text("consumer")};
    return a;
}

void ask_free(struct ask_group *a)
{
    leat_mem_free(a->call.memory);
    leat_mem_free(a->r.offsets);
    free(a);
}

void start(struct home *home, struct ask_group *a)
{
    a->r.on_done = home_done;
    a->r.owner = &a->answered;
    a->answered = leat_groups_do(home->groups, &a->r);
}

void await(struct home *home, struct ask_group *a)
{
    for (int i = 0; i < 20000 && !a->answered; i++)
        home_run(home, 2000);
    assert_true(a->answered);
}

void answer_both(struct home *home, struct ask_group *a, struct ask_group *b)
{
    start(home, a);
    start(home, b);
    await(home, a);
    await(home, b);
}

leat_err rc_of(struct ask_group *a)
{
    leat_err rc = a->r.rc;
    ask_free(a);
    return rc;
}

leat_err answer_of(struct home *home, struct ask_group *a)
{
    start(home, a);
    await(home, a);
    return rc_of(a);
}

leat_err beat(struct home *home, const char *member, const char *instance, uint32_t generation)
{
    struct ask_group *a = ask_new(LEAT_GROUPS_CLASSIC_HEARTBEAT, member, generation);
    a->call.instance = text(instance);
    return answer_of(home, a);
}

leat_err leave(struct home *home, const char *member, const char *instance)
{
    struct ask_group *a = ask_new(LEAT_GROUPS_CLASSIC_LEAVE, "", 0);
    a->leaver = (struct leat_classic_leaver){text(member), text(instance), LEAT_OK};
    a->call.leavers = &a->leaver;
    a->call.leaver_count = 1;
    start(home, a);
    await(home, a);
    leat_err rc = a->leaver.rc;
    ask_free(a);
    return rc;
}

leat_err commit(struct home *home, const char *member, uint32_t generation, uint32_t log,
                uint64_t offset, const char *metadata)
{
    struct leat_groups_offset row = {.log = {7, log, 0},
                                     .group = LEAT_SEGMENT_GROUP_NONE,
                                     .offset = offset,
                                     .leader_epoch_plus_1 = 5,
                                     .metadata = metadata,
                                     .metadata_bytes = (uint32_t)strlen(metadata)};
    return answer_of(home, commit_new(member, generation, &row, 1));
}

uint64_t fetched(struct home *home, uint32_t log, const char *metadata)
{
    struct leat_log_ref ref = {7, log, 0};
    struct ask_group *a = ask_new(LEAT_GROUPS_FETCH, "", 0);
    a->r.logs = &ref;
    a->r.log_count = 1;
    start(home, a);
    await(home, a);
    assert_int_equal(a->r.rc, LEAT_OK);
    uint64_t offset = a->r.offset_count ? a->r.offsets[0].offset : UINT64_MAX;
    if (metadata) {
        assert_int_equal(a->r.offsets[0].leader_epoch_plus_1, 5);
        assert_int_equal(a->r.offsets[0].metadata_bytes, strlen(metadata));
        assert_memory_equal(a->r.offsets[0].metadata, metadata, strlen(metadata));
    }
    ask_free(a);
    return offset;
}

struct ask_group *sync_new(const char *member, uint32_t generation)
{
    return ask_new(LEAT_GROUPS_CLASSIC_SYNC, member, generation);
}

struct ask_group *commit_new(const char *member, uint32_t generation,
                             const struct leat_groups_offset *rows, size_t count)
{
    struct ask_group *a = ask_new(LEAT_GROUPS_COMMIT, member, generation);
    a->r.commits = rows;
    a->r.commit_count = count;
    return a;
}

void commit_waits_for_tables(struct home *home, uint32_t log)
{
    struct leat_groups_offset row = {.log = {7, log, 0}, .group = -1, .offset = 5};
    struct ask_group *c = commit_new("", LEAT_CLASSIC_GENERATION_NONE, &row, 1);
    start(home, c);
    home_run(home, 20000);
    assert_false(c->answered);
    home->room->unread = 0;
    home_run(home, 20000);
    assert_true(c->answered);
    assert_int_equal(rc_of(c), LEAT_OK);
}

void classic_head_write(struct leat_msg_writer *writer, uint32_t fields, uint32_t members)
{
    leat_msg_write_array(writer, fields);
    for (unsigned i = 0; i < 3; i++)
        leat_msg_write_bin(writer, "x", 1);
    leat_msg_write_u64(writer, LEAT_CLASSIC_EMPTY);
    leat_msg_write_array(writer, members);
}

void share_out(struct ask_group *sync, const struct leat_classic_call *joined)
{
    for (uint32_t i = 0; i < joined->member_count; i++)
        sync->shares[i] =
            (struct leat_classic_share){joined->members[i].member, joined->members[i].member};
    sync->call.shares = sync->shares;
    sync->call.share_count = joined->member_count;
}

uint32_t single(struct home *home, const char *instance, char *out_member)
{
    struct ask_group *join = join_new("", instance, "m");
    start(home, join);
    await(home, join);
    if (join->r.rc == LEAT_E_MEMBER_ID_REQUIRED) {
        struct ask_group *again = join_new(join->r.member, instance, "m");
        ask_free(join);
        join = again;
        start(home, join);
        await(home, join);
    }
    assert_int_equal(join->r.rc, LEAT_OK);
    assert_string_equal(join->call.leader, join->r.member);
    assert_int_equal(join->call.member_count, 1);
    memcpy(out_member, join->r.member, LEAT_GROUPS_MEMBER_BYTES_MAX + 1);
    struct ask_group *sync = sync_new(out_member, join->r.generation);
    share_out(sync, &join->call);
    start(home, sync);
    await(home, sync);
    assert_int_equal(sync->r.rc, LEAT_OK);
    assert_int_equal(sync->call.assignment.bytes, strlen(out_member));
    uint32_t generation = join->r.generation;
    ask_free(sync);
    ask_free(join);
    return generation;
}

void nothing_of(struct leat_groups *groups, const uint8_t *bytes, uint32_t count)
{
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, RECORD_NOTHING);
    leat_msg_write_bin(&writer, bytes, count);
    leat_groups_record_add(groups, &writer);
}

void batch_fill(struct home *home)
{
    static const uint8_t bytes[60 * 1024];
    struct leat_groups *groups = home->groups;
    home->mute = true;
    leat_groups_nothing_add(groups);
    leat_groups_append_try(groups);
    static const uint32_t sizes[] = {sizeof bytes, 4000, 300};
    for (unsigned i = 0; i < 3; i++)
        while (leat_groups_record_fits(groups, sizes[i] + 100)) {
            nothing_of(groups, bytes, sizes[i]);
        }
}
