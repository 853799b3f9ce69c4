/* SPDX-License-Identifier: Apache-2.0 */
/* Native groups, exhaustively: each request at each moment, and the home's state after it. */
#include "home_trace.h"

static struct asked *joins(const char *name, const char *group, const struct asked *as,
                           uint32_t first, uint32_t second)
{
    struct asked *it = asks(name, LEAT_GROUPS_JOIN, group);
    it->streams[0] = first;
    it->streams[1] = second;
    it->a.r.streams = it->streams;
    it->a.r.stream_count = second ? 2 : 1;
    it->a.r.session_ms = 200;
    it->a.r.address = 9;
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    return it;
}
static struct asked *of_member(const char *name, enum leat_groups_kind kind, const struct asked *as,
                               uint32_t generation)
{
    struct asked *it = asks(name, kind, as->a.r.group);
    memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    it->a.r.generation = generation;
    it->a.r.address = 9;
    return it;
}
static struct asked *commits(const char *name, const char *group, const struct asked *as,
                             uint32_t generation, uint64_t offset)
{
    struct asked *it = asks(name, LEAT_GROUPS_COMMIT, group);
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    it->a.r.generation = generation;
    it->a.r.address = 9;
    it->a.r.commits = it->rows;
    it->a.r.commit_count = 1;
    it->rows[0] = (struct leat_groups_offset){
        .log = {7, 0, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = offset};
    return it;
}

static struct asked *one_comes(void)
{
    struct asked *a = comes(joins("a", "one", NULL, 7, 0));
    show();
    TRACE_IS(" batch 0:2:26c5e4dd\n"
             " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 0 of 1 "
             "acked\n");
    passes(5);
    show();
    TRACE_IS(" home timer +6 waiting 1 querying 0 reading 0 of 1; gathers 0, 1 of 1 acked\n"
             " one mode 0 generation 0 next 2 of 9, 168 bytes prepares settle +6 give up +196\n"
             "  1 fresh joins session 200 until - of 7\n");
    passes(15);
    show();
    TRACE_IS(" a: 0  generation 1 member 14-1\n"
             "  owns 7: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; "
             "4/0 0+1; 4/1 0+1\n"
             " batch 1:140:99dbdbcf\n"
             " home timer +191 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " one mode 0 generation 1 next 2 of 9, 388 bytes used -9\n"
             "  1 session 200 until +191 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
    return a;
}

static void one_commits(const struct asked *a)
{
    comes(of_member("beat", LEAT_GROUPS_HEARTBEAT, a, 1));
    comes(of_member("late beat", LEAT_GROUPS_HEARTBEAT, a, 2));
    comes(commits("commit", "one", a, 1, 50));
    show();
    TRACE_IS(
        " beat: 0  generation 1 member 14-1\n"
        " late beat: 36 the group has a newer generation: join again generation 2 member 14-1\n"
        " batch 2:13:ff291efc\n"
        " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 2 of 3 acked\n"
        " one mode 0 generation 1 next 2 of 9, 388 bytes used +0\n"
        "  1 session 200 until +200 of 7\n"
        "  7: 0/0=1 at 50; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
    passes(5);
    comes(commits("lower", "one", a, 1, 40));
    passes(5);
    struct asked *forced = commits("forced", "one", a, 1, 30);
    forced->a.r.force = true;
    forced->rows[0].leader_epoch_plus_1 = 3;
    forced->rows[0].metadata = "note";
    forced->rows[0].metadata_bytes = 4;
    forced->rows[1] = forced->rows[0];
    forced->rows[1].log.streamlet = 2;
    forced->a.r.commit_count = 2;
    comes(forced);
    comes(commits("stranger's", "one", NULL, 0, 60));
    comes(commits("old", "one", a, 7, 60));
    passes(5);
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    show();
    TRACE_IS(
        " commit: 0  generation 1 member 14-1\n"
        " lower: 0  generation 1 member 14-1\n"
        " stranger's: 35 the group has members: only they may commit, or wait until they are gone\n"
        " old: 36 the group has a newer generation: join again generation 7 member 14-1\n"
        " forced: 0  generation 1 member 14-1\n"
        " fetch: 0  generation 1 536 bytes\n"
        "  offset 7/0/0 -1 30 epoch 3 'note'\n"
        "  offset 7/2/0 -1 30 epoch 3 'note'\n"
        " batch 2:13:ff291efc\n"
        " batch 2:33:8549adc4\n"
        " home timer +185 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
        " one mode 0 generation 1 next 2 of 9, 416 bytes used -5\n"
        "  1 session 200 until +185 of 7\n"
        "  7: 0/0=1 at 30 epoch 3 'note'; 0/1=1; 1/0=1; 1/1=1; 2/0=1 at 30 epoch 3 'note'; 2/1=1; "
        "3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
}

static void one_goes(const struct asked *a)
{
    comes(of_member("leave", LEAT_GROUPS_LEAVE, a, 0));
    comes(of_member("again", LEAT_GROUPS_LEAVE, a, 0));
    show();
    TRACE_IS(
        " leave: 0  member 14-1\n"
        " again: 35 not a member (any more) member 14-1\n"
        " batch 1:127:eff3d9ba\n"
        " home timer +100 waiting 0 querying 0 reading 0 of 0; gathers 0 in flight, 5 of 6 acked\n"
        " one mode 0 generation 2 next 2 of 9, 324 bytes used +0\n"
        "  7: 0/0=0 at 30 epoch 3 'note'; 0/1=0; 1/0=0; 1/1=0; 2/0=0 at 30 epoch 3 'note'; 2/1=0; "
        "3/0=0; 3/1=0; 4/0=0; 4/1=0\n");
    passes(20);
    struct asked *forget = asks("forget", LEAT_GROUPS_OFFSETS_DELETE, "one");
    static const struct leat_log_ref logs[] = {{7, 2, 0}, {7, 3, 0}, {7, 2, 0}};
    forget->a.r.logs = logs;
    forget->a.r.log_count = 3;
    comes(forget);
    passes(5);
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    show();
    TRACE_IS(" forget: 0 \n"
             " fetch: 0  generation 2 532 bytes\n"
             "  offset 7/0/0 -1 30 epoch 3 'note'\n"
             " batch 2:35:cfc4881d\n"
             " home timer +59995 waiting 0 querying 0 reading 0 of 0; gathers 0, 7 of 7 acked\n"
             " one mode 0 generation 2 next 2 of 9, 310 bytes used -5\n"
             "  7: 0/0=0 at 30 epoch 3 'note'; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; "
             "4/0=0; 4/1=0\n");
    comes(asks("delete", LEAT_GROUPS_DELETE, "one"));
    show();
    TRACE_IS(" batch 3:6:b5c6ae4b\n"
             " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 7 of 8 "
             "acked\n");
    passes(5);
    show();
    TRACE_IS(" delete: 0 \n"
             " home timer - waiting 0 querying 0 reading 0 of 0; gathers 0, 8 of 8 acked\n");
}

static void one_member_comes_reads_and_goes(void **state)
{
    (void)state;
    const struct asked *a = one_comes();
    one_commits(a);
    one_goes(a);
}

static const struct asked *another_comes(const struct asked *a, const struct asked *b)
{
    comes(of_member("a beats", LEAT_GROUPS_HEARTBEAT, a, 1));
    struct asked *c = comes(joins("c", "many", NULL, LARGE_STREAM + 3, 0));
    comes(of_member("a beats", LEAT_GROUPS_HEARTBEAT, a, 1));
    comes(commits("a commits", "many", a, 1, 5));
    comes(joins("a joins", "many", a, 7, 0));
    show();
    TRACE_IS(
        " a beats: 0  generation 1 member 14-1\n"
        " a beats: 36 the group is being shared out anew: commit, then join again generation 1 "
        "member 14-1\n"
        " batch 2:14:c6b01cd1\n"
        " home timer +100 waiting 3 querying 0 reading 0 of 3; gathers 0 in flight, 2 of 3 acked\n"
        " many mode 0 generation 1 next 5 of 9, 910 bytes prepares settle +10 give up +200 used "
        "+0\n"
        "  1 joins session 200 until +200 of 7\n"
        "  2 session 200 until +187 of 7 803\n"
        "  3 session 200 until +187 of 7\n"
        "  4 fresh joins session 200 until - of 803\n"
        "  7: 0/0=1 at 5; 0/1=2; 1/0=3; 1/1=1; 2/0=2; 2/1=3; 3/0=1; 3/1=2; 4/0=3; 4/1=1\n"
        "  803: 0/0=2; 0/1=2; 1/0=2; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    passes(150);
    comes(joins("b joins", "many", b, 7, LARGE_STREAM + 3));
    passes(20);
    comes(joins("b lost it", "many", b, 7, LARGE_STREAM + 3));
    passes(2);
    show();
    TRACE_IS(" a commits: 0  generation 1 member 14-1\n"
             " b joins: 8 the member has joined again member a7-2\n"
             " home timer +15 waiting 3 querying 0 reading 0 of 3; gathers 0, 3 of 3 acked\n"
             " many mode 0 generation 1 next 5 of 9, 910 bytes prepares settle -162 give up +28 "
             "used -2\n"
             "  1 joins session 200 until +28 of 7\n"
             "  2 joins session 200 until +15 of 7 803\n"
             "  3 session 200 until +15 of 7\n"
             "  4 fresh joins session 200 until - of 803\n"
             "  7: 0/0=1 at 5; 0/1=2; 1/0=3; 1/1=1; 2/0=2; 2/1=3; 3/0=1; 3/1=2; 4/0=3; 4/1=1\n"
             "  803: 0/0=2; 0/1=2; 1/0=2; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    return c;
}

/* And then nobody does again. */
static void those_that_have_joined_share(const struct asked *c)
{
    comes(of_member("c leaves", LEAT_GROUPS_LEAVE, c, 0));
    passes(100);
    show();
    TRACE_IS(" c leaves: 35 not a member (any more)\n"
             " a joins: 0  generation 2 member 14-1\n"
             "  owns 7: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; "
             "4/0 0+1; 4/1 0+1\n"
             " b lost it: 0  generation 2 member a7-2\n"
             "  owns 803: 2/1 0+1; 3/0 0+1; 3/1 0+1; 4/0 0+1; 4/1 0+1\n"
             " c: 0  generation 2 member 22-4\n"
             "  owns 803: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1\n"
             " batch 1:322:9c34ecd2\n"
             " home timer +115 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
             " many mode 0 generation 2 next 5 of 9, 818 bytes used -85\n"
             "  1 session 200 until +115 of 7\n"
             "  2 session 200 until +115 of 7 803\n"
             "  4 session 200 until +115 of 803\n"
             "  7: 0/0=1 at 5; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n"
             "  803: 0/0=4; 0/1=4; 1/0=4; 1/1=4; 2/0=4; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    passes(120); /* nobody has joined again */
    show();
    TRACE_IS(" batch 1:236:9b6a357a\n"
             " home timer +59995 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
             " many mode 0 generation 3 next 5 of 9, 537 bytes used -5\n"
             "  7: 0/0=0 at 5; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n"
             "  803: 0/0=0; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n");
    passes(100);
    show();
    TRACE_IS(" home timer +59895 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
             " many mode 0 generation 3 next 5 of 9, 537 bytes used -105\n"
             "  7: 0/0=0 at 5; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n"
             "  803: 0/0=0; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n");
}

static void several_members_share_what_they_read(void **state)
{
    (void)state;
    struct asked *a = comes(joins("a", "many", NULL, 7, 0));
    passes(4);
    struct asked *b = comes(joins("b", "many", NULL, 7, LARGE_STREAM + 3));
    comes(joins("third", "many", NULL, 7, 0));
    passes(20);
    show();
    TRACE_IS(" a: 0  generation 1 member 14-1\n"
             "  owns 7: 0/0 0+1; 1/1 0+1; 3/0 0+1; 4/1 0+1\n"
             " b: 0  generation 1 member a7-2\n"
             "  owns 7: 0/1 0+1; 2/0 0+1; 3/1 0+1\n"
             "  owns 803: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; "
             "4/0 0+1; 4/1 0+1\n"
             " third: 0  generation 1 member 73-3\n"
             "  owns 7: 1/0 0+1; 2/1 0+1; 4/0 0+1\n"
             " batch 0:2:26c5e4dd\n"
             " batch 1:320:f0aa3ed8\n"
             " home timer +187 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " many mode 0 generation 1 next 4 of 9, 818 bytes used -13\n"
             "  1 session 200 until +187 of 7\n"
             "  2 session 200 until +187 of 7 803\n"
             "  3 session 200 until +187 of 7\n"
             "  7: 0/0=1; 0/1=2; 1/0=3; 1/1=1; 2/0=2; 2/1=3; 3/0=1; 3/1=2; 4/0=3; 4/1=1\n"
             "  803: 0/0=2; 0/1=2; 1/0=2; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    those_that_have_joined_share(another_comes(a, b));
}

static void members_are_there_after_a_start(void **state)
{
    (void)state;
    struct asked *a = comes(joins("a", "kept", NULL, 7, 0));
    struct asked *b = comes(joins("b", "kept", NULL, 7, 0));
    passes(20);
    comes(commits("commit", "kept", a, 1, 5));
    passes(5);
    trace_begin();
    home_restart(home);
    comes(of_member("a beats", LEAT_GROUPS_HEARTBEAT, a, 1));
    show();
    TRACE_IS(
        " batch 0:2:26c5e4dd\n"
        " batch 1:168:99d935a6\n"
        " batch 2:14:4cf14049\n"
        " batch 0:2:26c5e4dd\n"
        " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 0 of 1 acked\n"
        " kept mode 0 generation 1 next 3 of 9, 481 bytes\n"
        "  1 session 200 until - of 7\n"
        "  2 session 200 until - of 7\n"
        "  7: 0/0=1 at 5; 0/1=2; 1/0=1; 1/1=2; 2/0=1; 2/1=2; 3/0=1; 3/1=2; 4/0=1; 4/1=2\n");
    passes(5);
    show();
    TRACE_IS(" a beats: 0  generation 1 member 14-1\n"
             " home timer +196 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " kept mode 0 generation 1 next 3 of 9, 481 bytes\n"
             "  1 session 200 until +196 of 7\n"
             "  2 session 200 until +196 of 7\n"
             "  7: 0/0=1 at 5; 0/1=2; 1/0=1; 1/1=2; 2/0=1; 2/1=2; 3/0=1; 3/1=2; 4/0=1; 4/1=2\n");
    home_roll(home);
    batches_seen = 0;
    home_restart(home);
    comes(of_member("b beats", LEAT_GROUPS_HEARTBEAT, b, 1));
    passes(5);
    assert_int_equal(leat_groups_on_stream_changed(home->groups, 7), 3);
    assert_int_equal(leat_groups_on_stream_changed(home->groups, 8), 3);
    show();
    TRACE_IS(" b beats: 0  generation 1 member a7-2\n"
             " batch 0:2:26c5e4dd\n"
             " home timer +196 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " kept mode 0 generation 1 next 3 of 9, 481 bytes prepares settle +10 give up +200\n"
             "  1 session 200 until +196 of 7\n"
             "  2 session 200 until +196 of 7\n"
             "  7: 0/0=1 at 5; 0/1=2; 1/0=1; 1/1=2; 2/0=1; 2/1=2; 3/0=1; 3/1=2; 4/0=1; 4/1=2\n");
    assert_int_equal(leat_groups_on_stream_deleted(home->groups, 7), 1 + UNITS - UNITS + 3);
    show();
    TRACE_IS(" home timer +196 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " kept mode 0 generation 1 next 3 of 9, 261 bytes prepares settle +10 give up +200\n"
             "  1 session 200 until +196 of 7\n"
             "  2 session 200 until +196 of 7\n");
    struct asked *join = joins("a joins", "kept", a, 7, 0);
    comes(join);
    leat_groups_cancel(home->groups, &join->a.r);
    show();
    TRACE_IS(" a joins: 8 cancelled member 14-1\n"
             " home timer +196 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " kept mode 0 generation 1 next 3 of 9, 261 bytes prepares settle +10 give up +200 "
             "used +0\n"
             "  1 session 200 until +200 of 7\n"
             "  2 session 200 until +196 of 7\n");
    passes(300);
    show();
    TRACE_IS(" batch 1:14:7f9ea364\n"
             " home timer +59900 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " kept mode 0 generation 2 next 3 of 9, 77 bytes used -100\n");
}

static void both_commit(const struct asked *a, const struct asked *b)
{
    for (int64_t group = 0; group < 6; group++) {
        struct asked *c = commits("commit", "wide", group % 2 ? b : a, 1, 50 + (uint64_t)group);
        c->rows[0].group = group;
        if (group == 3) c->rows[0].offset = LEAT_SEGMENT_GROUP_DONE;
        if (group == 4) c->rows[0].log.streamlet = 1;
        comes(c);
        if (group == 1) show();
        passes(5);
    }
    comes(asks("fetch", LEAT_GROUPS_FETCH, "wide"));
    show();
    TRACE_IS(" commit: 0  generation 1 member 14-1\n"
             " batch 2:14:afb31825\n"
             " home timer +186 waiting 0 querying 1 reading 0 of 1; gathers 0, 3 of 3 acked\n"
             " wide mode 1 generation 1 next 3 of 9, 661 bytes used +0\n"
             "  1 session 200 until +186 of 7\n"
             "  2 session 200 until +186 of 7\n"
             "  7: 0/0=0 at 50; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n"
             " commit: 0  generation 1 member a7-2\n"
             " commit: 0  generation 1 member 14-1\n"
             " commit: 0  generation 1 member a7-2\n"
             " commit: 37 a log or segment group of the commit is not assigned to this member "
             "generation 1 member 14-1\n"
             " commit: 0  generation 1 member a7-2\n"
             " fetch: 0  generation 1 720 bytes\n"
             "  offset 7/0/0 0 50 epoch 0 ''\n"
             "  offset 7/0/0 1 51 epoch 0 ''\n"
             "  offset 7/0/0 2 52 epoch 0 ''\n"
             "  offset 7/0/0 3 -1 epoch 0 ''\n"
             "  offset 7/0/0 5 55 epoch 0 ''\n"
             "  offset 7/0/1 0 0 epoch 0 ''\n"
             "  offset 7/1/0 0 0 epoch 0 ''\n"
             "  offset 7/1/1 0 0 epoch 0 ''\n"
             "  offset 7/2/0 0 0 epoch 0 ''\n"
             "  offset 7/2/1 0 0 epoch 0 ''\n"
             "  offset 7/3/0 0 0 epoch 0 ''\n"
             "  offset 7/3/1 0 0 epoch 0 ''\n"
             "  offset 7/4/0 0 0 epoch 0 ''\n"
             "  offset 7/4/1 0 0 epoch 0 ''\n"
             " batch 2:14:4e7a0351\n"
             " batch 2:14:ae57cf23\n"
             " batch 2:22:a8457d75\n"
             " batch 2:14:c76af592\n"
             " home timer +161 waiting 0 querying 0 reading 0 of 0; gathers 0, 7 of 7 acked\n"
             " wide mode 1 generation 1 next 3 of 9, 733 bytes used -5\n"
             "  1 session 200 until +161 of 7\n"
             "  2 session 200 until +161 of 7\n"
             "  7: 0/0=0 at 50 1:51 2:52 3:-1 5:55; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; "
             "3/1=0; 4/0=0; 4/1=0\n");
}

static void parallel_members_finish_groups(void **state)
{
    (void)state;
    struct asked *a = joins("a", "wide", NULL, 7, 0), *b = joins("b", "wide", NULL, 7, 0);
    a->a.r.mode = b->a.r.mode = LEAT_GROUPS_PARALLEL;
    comes(a);
    comes(b);
    passes(20);
    show();
    TRACE_IS(" a: 0  generation 1 member 14-1\n"
             "  owns 7: 0/0 0+2; 0/1 1+2; 1/0 1+2; 1/1 0+2; 2/0 0+2; 2/1 1+2; 3/0 1+2; 3/1 0+2; "
             "4/0 0+2; 4/1 1+2\n"
             " b: 0  generation 1 member a7-2\n"
             "  owns 7: 0/0 1+2; 0/1 0+2; 1/0 0+2; 1/1 1+2; 2/0 1+2; 2/1 0+2; 3/0 0+2; 3/1 1+2; "
             "4/0 1+2; 4/1 0+2\n"
             " batch 0:2:26c5e4dd\n"
             " batch 1:168:3a87746b\n"
             " home timer +191 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " wide mode 1 generation 1 next 3 of 9, 661 bytes used -9\n"
             "  1 session 200 until +191 of 7\n"
             "  2 session 200 until +191 of 7\n"
             "  7: 0/0=0; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; 3/0=0; 3/1=0; 4/0=0; 4/1=0\n");
    both_commit(a, b);
    home->first_group = 2;
    struct asked *skips = commits("skips", "wide", a, 1, LEAT_SEGMENT_GROUP_DONE);
    skips->rows[0].group = 2;
    comes(skips);
    passes(5);
    show();
    TRACE_IS(" skips: 0  generation 1 member 14-1\n"
             " batch 2:36:11f2776a\n"
             " home timer +156 waiting 0 querying 0 reading 0 of 0; gathers 0, 8 of 8 acked\n"
             " wide mode 1 generation 1 next 3 of 9, 679 bytes used -5\n"
             "  1 session 200 until +156 of 7\n"
             "  2 session 200 until +156 of 7\n"
             "  7: 0/0=0 groups from 4, this generation 0 5:55; 0/1=0; 1/0=0; 1/1=0; 2/0=0; 2/1=0; "
             "3/0=0; 3/1=0; 4/0=0; 4/1=0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(one_member_comes_reads_and_goes),
        HOME_TEST(several_members_share_what_they_read),
        HOME_TEST(members_are_there_after_a_start),
        HOME_TEST(parallel_members_finish_groups),
    };
    return cmocka_run_group_tests_name("groups-native", tests, NULL, nothing_left);
}
