/* SPDX-License-Identifier: Apache-2.0 */
/* Homes in trouble: logs that take nothing or answer late, homes that were followed, members again, short memory. */
#include "home_trace.h"
static const uint32_t STREAM = 7;

static struct asked *native(const char *name, const char *group, const struct asked *as)
{
    struct asked *it = asks(name, LEAT_GROUPS_JOIN, group);
    it->streams[0] = STREAM;
    it->a.r.streams = it->streams;
    it->a.r.stream_count = 1;
    it->a.r.session_ms = 500;
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    return it;
}
static struct asked *member_of_group(const char *name, const char *member, const char *instance)
{
    struct asked *it = asks(name, LEAT_GROUPS_CLASSIC_JOIN, "readers");
    it->protocols[0] = (struct leat_classic_protocol){text("range"), text("m")};
    it->a.r.classic = &it->a.call;
    it->a.r.session_ms = 500;
    snprintf(it->a.r.member, sizeof it->a.r.member, "%s", member);
    it->a.call =
        (struct leat_classic_call){.instance = text(instance),
                                   .client = text("a client/with\x01 a name that is longer"),
                                   .rebalance_ms = 600,
                                   .protocols = it->protocols,
                                   .protocol_count = 1,
                                   .protocol_type = text("consumer")};
    return it;
}
static struct asked *of_group(const char *name, enum leat_groups_kind kind, const struct asked *as)
{
    struct asked *it = asks(name, kind, "readers");
    it->a.r.classic = &it->a.call;
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    if (as) it->a.r.generation = as->a.r.generation;
    return it;
}
static struct asked *shares(const char *name, const struct asked *as)
{
    struct asked *it = of_group(name, LEAT_GROUPS_CLASSIC_SYNC, as);
    for (uint32_t i = 0; i < as->a.call.member_count; i++) {
        struct leat_msg_string id = as->a.call.members[i].member;
        it->a.shares[i] = (struct leat_classic_share){id, {id.text + id.bytes - 4, 4}};
        it->a.call.share_count = i + 1;
    }
    it->a.call.shares = it->a.shares;
    return it;
}
static struct asked *commit_of(const char *name, const char *group, const struct asked *as,
                               uint32_t generation, unsigned rows)
{
    struct asked *it = asks(name, LEAT_GROUPS_COMMIT, group);
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    it->a.r.generation = generation;
    it->a.r.commits = it->rows;
    it->a.r.commit_count = rows;
    for (unsigned i = 0; i < rows; i++)
        it->rows[i] =
            (struct leat_groups_offset){.log = {STREAM, (rows - i) % STREAMLETS, i % LOGS},
                                        .group = LEAT_SEGMENT_GROUP_NONE,
                                        .offset = 10 + i,
                                        .metadata = i % 2 ? "n" : NULL,
                                        .metadata_bytes = i % 2};
    return it;
}

static void log_that_takes_nothing_is_asked_again(void **state)
{
    (void)state;
    struct asked *a = comes(native("a", "one", NULL));
    passes(20);
    trace_begin();
    home->append_rc = LEAT_E_AGAIN;
    comes(commit_of("commit", "one", a, 1, 3));
    comes(commit_of("empty", "one", a, 1, 0));
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    show();
    TRACE_IS(" empty: 0  generation 1 member 14-1\n"
             " batch 0:2:26c5e4dd\n"
             " batch 1:140:41c25286\n"
             " home timer +100 waiting 2 querying 0 reading 0 of 2; gathers 0, 2 of 3 acked\n"
             " one mode 0 generation 1 next 2 of 0, 399 bytes used +0\n"
             "  1 session 500 until +491 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1 at 12; 1/1=1; 2/0=1; 2/1=1 at 11 epoch 0 'n'; 3/0=1 at 10; "
             "3/1=1; 4/0=1; 4/1=1\n");
    passes(250);
    show();
    TRACE_IS(" home timer +50 waiting 2 querying 0 reading 0 of 2; gathers 0, 2 of 3 acked\n"
             " one mode 0 generation 1 next 2 of 0, 399 bytes used -50\n"
             "  1 session 500 until +241 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1 at 12; 1/1=1; 2/0=1; 2/1=1 at 11 epoch 0 'n'; 3/0=1 at 10; "
             "3/1=1; 4/0=1; 4/1=1\n");
    home->append_rc = LEAT_OK;
    leat_groups_on_room(home->groups);
    trace_records();
    TRACE_IS(" batch 2:29:218d6a97\n");
    passes(5);
    show();
    TRACE_IS(" commit: 0  generation 1 member 14-1\n"
             " fetch: 0  generation 1 529 bytes\n"
             "  offset 7/1/0 -1 12 epoch 0 ''\n"
             "  offset 7/2/1 -1 11 epoch 0 'n'\n"
             "  offset 7/3/0 -1 10 epoch 0 ''\n"
             " home timer +236 waiting 0 querying 0 reading 0 of 0; gathers 0, 3 of 3 acked\n"
             " one mode 0 generation 1 next 2 of 0, 399 bytes used -55\n"
             "  1 session 500 until +236 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1 at 12; 1/1=1; 2/0=1; 2/1=1 at 11 epoch 0 'n'; 3/0=1 at 10; "
             "3/1=1; 4/0=1; 4/1=1\n");
}

static void log_that_acks_nothing_is_told_of(void **state)
{
    (void)state;
    struct asked *a = comes(native("a", "one", NULL));
    passes(20);
    trace_begin();
    home->mute = true;
    comes(commit_of("commit", "one", a, 1, 1));
    comes(native("b", "one", NULL));
    comes(asks("delete", LEAT_GROUPS_DELETE, "other"));
    passes(600);
    show();
    TRACE_IS(
        " delete: 34 no such consumer group\n"
        " batch 0:2:26c5e4dd\n"
        " batch 1:140:41c25286\n"
        " batch 2:13:9856a53a\n"
        " home timer +91 waiting 2 querying 0 reading 0 of 2; gathers 1 in flight, 2 of 3 acked\n"
        " one mode 0 generation 2 next 3 of 0, 388 bytes used -9\n"
        "  2 session 500 until +391 of 7\n"
        "  7: 0/0=2; 0/1=2; 1/0=2 at 10; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    passes(29500);
    show();
    TRACE_IS(
        " commit: 2 the consumer group's home log did not answer in time; whether this took effect "
        "is unknown generation 1 member 14-1\n"
        " home timer +1 waiting 1 querying 0 reading 0 of 1; gathers 1 in flight, 2 of 3 acked\n"
        " one mode 0 generation 2 next 3 of 0, 388 bytes prepares settle +1 give up +1 used -9\n"
        "  2 gone session 500 until -29109 of 7\n"
        "  7: 0/0=2; 0/1=2; 1/0=2 at 10; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
    home->mute = false;
    passes(10);
    show();
    TRACE_IS(
        " b: 35 not a member any more: the group has a newer generation: join anew generation 2 "
        "member a7-2\n"
        " batch 1:140:fd85db92\n"
        " home timer +1 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
        " one mode 0 generation 2 next 3 of 0, 388 bytes prepares settle +1 give up +1 used -9\n"
        "  2 gone session 500 until -29119 of 7\n"
        "  7: 0/0=2; 0/1=2; 1/0=2 at 10; 1/1=2; 2/0=2; 2/1=2; 3/0=2; 3/1=2; 4/0=2; 4/1=2\n");
}

static void log_that_fails_breaks_its_home(void **state)
{
    (void)state;
    struct asked *a = comes(native("a", "one", NULL));
    passes(20);
    comes(native("b", "two", NULL));
    comes(native("c", "three", NULL));
    passes(1);
    trace_begin();
    home->append_rc = LEAT_E_DISK;
    passes(20); /* both settle at one time: the first breaks it */
    show();
    TRACE_IS(" c: 5 the home log of this consumer group is out of order: the disk failed a read, "
             "write or flush\n"
             " b: 5 the home log of this consumer group is out of order: the disk failed a read, "
             "write or flush generation 1 member a7-1\n"
             " batch 0:2:26c5e4dd\n"
             " batch 1:140:41c25286\n"
             " home timer - waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 3 acked\n"
             " one mode 0 generation 1 next 2 of 0, 388 bytes used -11\n"
             "  1 session 500 until +470 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n"
             " two mode 0 generation 1 next 2 of 0, 388 bytes used -11\n"
             "  1 session 500 until +489 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n"
             " three mode 0 generation 0 next 2 of 0, 170 bytes prepares settle -11 give up +479 "
             "used -11\n"
             "  1 fresh session 500 until - of 7\n");
    comes(commit_of("commit", "one", a, 1, 1));
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    TRACE_IS(
        " commit: 5 the home log of this consumer group is out of order: the disk failed a "
        "read, write or flush generation 1 member 14-1\n"
        " fetch: 5 the home log of this consumer group is out of order: the disk failed a read, "
        "write or flush\n");
    home->append_rc = LEAT_OK;
    home_restart(home);
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    passes(5);
    show();
    TRACE_IS(" fetch: 0  generation 1 528 bytes\n"
             " batch 0:2:26c5e4dd\n"
             " home timer +496 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " one mode 0 generation 1 next 2 of 0, 388 bytes\n"
             "  1 session 500 until +496 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
}

static void member_of_a_followed_home_comes_again(struct asked *a)
{
    comes(native("again", "one", a));
    show();
    TRACE_IS(
        " fetch: 0  generation 1 529 bytes\n"
        "  offset 7/1/1 -1 11 epoch 0 'n'\n"
        "  offset 7/2/0 -1 10 epoch 0 ''\n"
        " batch 0:2:26c5e4dd\n"
        " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 4 of 5 acked\n"
        " one mode 0 generation 1 next 2 of 0, 399 bytes used +0\n"
        "  1 session 500 until +500 of 7\n"
        "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1 at 11 epoch 0 'n'; 2/0=1 at 10; 2/1=1; 3/0=1; 3/1=1; "
        "4/0=1; 4/1=1\n");
    passes(5);
    show();
    TRACE_IS(" again: 0  generation 1 member a7-1 320 bytes\n"
             "  owns 7: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; "
             "4/0 0+1; 4/1 0+1\n"
             " home timer +495 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
             " one mode 0 generation 1 next 2 of 0, 399 bytes used -5\n"
             "  1 session 500 until +495 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1 at 11 epoch 0 'n'; 2/0=1 at 10; 2/1=1; 3/0=1; 3/1=1; "
             "4/0=1; 4/1=1\n");
    home->append_rc = LEAT_E_STALE_EPOCH;
    comes(native("once more", "one", a));
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    show();
    TRACE_IS(" once more: 11 the home log of this consumer group is out of order: the epoch is "
             "older than the log's owner epoch member a7-1 320 bytes\n"
             " fetch: 11 the home log of this consumer group is out of order: the epoch is older "
             "than the log's owner epoch\n"
             " home timer - waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 6 acked\n"
             " one mode 0 generation 1 next 2 of 0, 399 bytes used +0\n"
             "  1 session 500 until +495 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1 at 11 epoch 0 'n'; 2/0=1 at 10; 2/1=1; 3/0=1; 3/1=1; "
             "4/0=1; 4/1=1\n");
    home->append_rc = LEAT_OK;
}

static void home_that_was_followed_asks_its_log_first(void **state)
{
    (void)state;
    home->followed = true;
    home_restart(home);
    struct asked *a = comes(native("a", "one", NULL));
    passes(20);
    comes(commit_of("commit", "one", a, 1, 2));
    passes(5);
    trace_begin();
    comes(asks("fetch", LEAT_GROUPS_FETCH, "one"));
    show();
    TRACE_IS(
        " batch 0:2:26c5e4dd\n"
        " batch 1:140:ff27f256\n"
        " batch 2:23:8f355715\n"
        " batch 0:2:26c5e4dd\n"
        " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 3 of 4 acked\n"
        " one mode 0 generation 1 next 2 of 0, 399 bytes used -5\n"
        "  1 session 500 until +486 of 7\n"
        "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1 at 11 epoch 0 'n'; 2/0=1 at 10; 2/1=1; 3/0=1; 3/1=1; "
        "4/0=1; 4/1=1\n");
    passes(5);
    member_of_a_followed_home_comes_again(a);
}

static void others_come(void)
{
    struct asked *unknown = member_of_group("other kind", "", "third");
    unknown->a.call.protocol_type = text("connect");
    comes(unknown);
    unknown = member_of_group("other protocol", "", "third");
    unknown->protocols[0].name = text("sticky");
    comes(unknown);
    unknown = member_of_group("third", "", "third");
    unknown->a.r.session_ms = 100;
    comes(unknown);
    passes(2);
    comes(of_group("list", LEAT_GROUPS_LIST, NULL));
    comes(of_group("describe", LEAT_GROUPS_DESCRIBE, NULL));
    show();
    TRACE_IS(" other kind: 50 the group's members know no protocol in common with this one\n"
             " other protocol: 50 the group's members know no protocol in common with this one\n"
             " list: 0  56 bytes\n"
             "  group 'readers' 'consumer' phase 1 mode 2\n"
             " describe: 0  generation 1 626 bytes\n"
             "  'consumer' 'range'\n"
             "  row b1d0 'cellar' 'a client/with a name that is longer' '' 'm' 'a3a7'\n"
             "  row e89d 'attic' 'a client/with a name that is longer' '' 'm' 'a722'\n"
             "  row e8a6 'third' 'a client/with a name that is longer' '' 'm' ''\n"
             "  phase 1 mode 2\n"
             " home timer +488 waiting 1 querying 0 reading 0 of 1; gathers 0, 5 of 5 acked\n"
             " readers mode 2 generation 1 next 1 of 0, 685 bytes used -2\n"
             "  preparing 'consumer' 'range' leader b1d0 settle -2 give up +798 sync by +564; 798 "
             "stored, 246 of members, 8 shared out\n"
             "  b1d0 of 0 session 300 rebalance 600 until +493 'cellar' 'a client/with a name "
             "that is longer' '' range=m has 'a3a7'\n"
             "  e89d of 6 session 700 rebalance 800 until +488 'attic' 'a client/with a name that "
             "is longer' '' range=m has 'a722'\n"
             "  e8a6 joins of 0 session 100 rebalance 600 until +98 'third' 'a client/with a name "
             "that is longer' '' range=m has ''\n");
    passes(800); /* those that are away have their sessions */
    show();
    TRACE_IS(" third: 0  generation 2 member e8a6 215 bytes\n"
             "  leader e8a6\n"
             "  'consumer' 'range'\n"
             "  row e8a6 'third' 'a client/with a name that is longer' '' 'm' ''\n"
             " batch 4:226:8ff2b74b\n"
             " batch 4:28:e6a198f7\n"
             " home timer +59793 waiting 0 querying 0 reading 0 of 0; gathers 0, 7 of 7 acked\n"
             " readers mode 2 generation 3 next 1 of 0, 685 bytes used -207\n"
             "  empty 'consumer' '' leader  settle -207 give up -107 sync by -107; 40 stored, 0 of "
             "members, 0 shared out\n");
}

static void static_members_come_again(void **state)
{
    (void)state;
    struct asked *a = comes(member_of_group("a", "", "cellar"));
    struct asked *b = comes(member_of_group("b", "", "attic"));
    passes(50);
    comes(shares("a shares", a));
    passes(5);
    trace_begin();
    struct asked *next = member_of_group("b's next", "", "attic");
    next->a.call.can_skip = true; /* it never led */
    next->a.r.session_ms = 700;
    next->a.call.rebalance_ms = 800;
    next->a.r.address = 6;
    comes(next);
    passes(5);
    show();
    TRACE_IS(" b's next: 0  generation 1 member e89d 14 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             " batch 0:2:26c5e4dd\n"
             " batch 4:361:49d5332f\n"
             " batch 4:369:c3aea2fd\n"
             " batch 4:369:5bfe6986\n"
             " home timer +490 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
             " readers mode 2 generation 1 next 1 of 0, 685 bytes used -5\n"
             "  stable first 'consumer' 'range' leader a3a7 settle -29 give up +541 sync by +571; "
             "571 stored, 167 of members, 8 shared out\n"
             "  a3a7 of 0 session 500 rebalance 600 until +490 'cellar' 'a client/with a name "
             "that is longer' '' range=m has 'a3a7'\n"
             "  e89d of 6 session 700 rebalance 800 until +495 'attic' 'a client/with a name that "
             "is longer' '' range=m has 'a722'\n");
    struct asked *old = of_group("b syncs", LEAT_GROUPS_CLASSIC_SYNC, b);
    old->a.call.instance = text("attic");
    comes(old);
    struct asked *lead = member_of_group("a's next", "", "cellar");
    lead->a.r.session_ms = 300;
    comes(lead);
    passes(5);
    show();
    TRACE_IS(
        " b syncs: 49 another member has taken over this instance id generation 1 member a722\n"
        " a's next: 0  generation 1 member b1d0 14 bytes\n"
        "  leader a3a7\n"
        "  'consumer' 'range'\n"
        " batch 4:370:1721fa38\n"
        " home timer +490 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
        " readers mode 2 generation 1 next 1 of 0, 685 bytes used -5\n"
        "  stable first 'consumer' 'range' leader b1d0 settle -34 give up +536 sync by +566; 571 "
        "stored, 167 of members, 8 shared out\n"
        "  b1d0 of 0 session 300 rebalance 600 until +495 'cellar' 'a client/with a name that is "
        "longer' '' range=m has 'a3a7'\n"
        "  e89d of 6 session 700 rebalance 800 until +490 'attic' 'a client/with a name that is "
        "longer' '' range=m has 'a722'\n");
    others_come();
}

static void nameless_member_is_told_its_name(void **state)
{
    (void)state;
    struct asked *a = comes(member_of_group("a", "", ""));
    show();
    TRACE_IS(" batch 0:2:26c5e4dd\n"
             " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 0 of 1 "
             "acked\n");
    passes(40);
    show();
    TRACE_IS(" a: 0  generation 1 member a3a7 210 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             "  row a3a7 '' 'a client/with a name that is longer' '' 'm' ''\n"
             " batch 4:223:6ba472f9\n"
             " home timer +491 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " readers mode 2 generation 1 next 1 of 0, 685 bytes used -9\n"
             "  completing first 'consumer' 'range' leader a3a7 settle -9 give up +561 sync by "
             "+591; 330 stored, 74 of members, 0 shared out\n"
             "  a3a7 of 0 session 500 rebalance 600 until +491 '' 'a client/with a name that is "
             "longer' '' range=m has ''\n");
    comes(of_group("leave nobody", LEAT_GROUPS_CLASSIC_LEAVE, NULL));
    comes(native("native", "readers", NULL));
    struct asked *wide = native("wide", "readers", NULL);
    wide->a.r.mode = LEAT_GROUPS_PARALLEL;
    comes(wide);
    comes(commit_of("stranger", "readers", NULL, 0, 1));
    comes(of_group("syncs", LEAT_GROUPS_CLASSIC_SYNC, a));
    passes(5);
    passes(700);
    comes(native("native", "readers", NULL));
    passes(20);
    comes(of_group("describe", LEAT_GROUPS_DESCRIBE, NULL));
    show();
    TRACE_IS(
        " leave nobody: 0 \n"
        " native: 50 this name is used by a group of Kafka clients: use another name, or join in "
        "ordered mode when its members are gone\n"
        " wide: 50 this name is used by a group of Kafka clients: use another name, or join in "
        "ordered mode when its members are gone\n"
        " stranger: 35 the group has members: only they may commit, or wait until they are gone\n"
        " syncs: 0  generation 1 member a3a7 14 bytes\n"
        "  'consumer' 'range'\n"
        " native: 0  generation 3 member 73-1\n"
        "  owns 7: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; 4/0 "
        "0+1; 4/1 0+1\n"
        " describe: 0  generation 3\n"
        "  phase 3 mode 0\n"
        " batch 4:223:28bd2566\n"
        " batch 4:28:e9c89adc\n"
        " batch 1:144:e9a5a64f\n"
        " home timer +490 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
        " readers mode 0 generation 3 next 2 of 0, 392 bytes used -10\n"
        "  1 session 500 until +490 of 7\n"
        "  7: 0/0=1; 0/1=1; 1/0=1; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
}

static void joins_are_cancelled(void **state)
{
    (void)state;
    struct asked *a = comes(native("a", "one", NULL)), *waking = comes(native("b", "one", NULL));
    leat_groups_cancel(home->groups, &waking->a.r);
    passes(5);
    show();
    TRACE_IS(" b: 8 cancelled\n"
             " batch 0:2:26c5e4dd\n"
             " home timer +6 waiting 1 querying 0 reading 0 of 1; gathers 0, 1 of 1 acked\n"
             " one mode 0 generation 0 next 2 of 0, 168 bytes prepares settle +6 give up +496\n"
             "  1 fresh joins session 500 until - of 7\n");
    struct asked *c = comes(native("c", "one", NULL));
    leat_groups_cancel(home->groups, &c->a.r);
    leat_groups_cancel(home->groups, &c->a.r);
    show();
    TRACE_IS(
        " c: 8 cancelled\n"
        " home timer +6 waiting 1 querying 0 reading 0 of 1; gathers 0, 1 of 1 acked\n"
        " one mode 0 generation 0 next 3 of 0, 260 bytes prepares settle +6 give up +496 used +0\n"
        "  1 fresh joins session 500 until - of 7\n"
        "  2 fresh gone session 500 until +500 of 7\n");
    passes(20);
    home->mute = true;
    struct asked *commits = comes(commit_of("commit", "one", a, 1, 1));
    leat_groups_cancel(home->groups, &commits->a.r);
    home->mute = false;
    show();
    TRACE_IS(
        " a: 0  generation 1 member 14-1\n"
        "  owns 7: 0/0 0+1; 0/1 0+1; 1/0 0+1; 1/1 0+1; 2/0 0+1; 2/1 0+1; 3/0 0+1; 3/1 0+1; 4/0 "
        "0+1; 4/1 0+1\n"
        " commit: 8 cancelled generation 1 member 14-1\n"
        " batch 1:140:24b5e0c3\n"
        " batch 2:13:9856a53a\n"
        " home timer +100 waiting 0 querying 0 reading 0 of 0; gathers 0 in flight, 2 of 3 acked\n"
        " one mode 0 generation 1 next 3 of 0, 388 bytes used +0\n"
        "  1 session 500 until +486 of 7\n"
        "  7: 0/0=1; 0/1=1; 1/0=1 at 10; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
    passes(5);
    show();
    TRACE_IS(" home timer +481 waiting 0 querying 0 reading 0 of 0; gathers 0, 3 of 3 acked\n"
             " one mode 0 generation 1 next 3 of 0, 388 bytes used -5\n"
             "  1 session 500 until +481 of 7\n"
             "  7: 0/0=1; 0/1=1; 1/0=1 at 10; 1/1=1; 2/0=1; 2/1=1; 3/0=1; 3/1=1; 4/0=1; 4/1=1\n");
}

/* Goal: a stored classic group comes back, or does not where memory is short; its members' one byte notes too. */
static void stored_group_is_taken_whole_or_not_at_all(void **state)
{
    (void)state;
    static uint8_t bytes[4096];
    struct asked *a = comes(member_of_group("a", "", "cellar"));
    comes(member_of_group("b", "", "attic"));
    passes(50);
    comes(shares("a shares", a));
    passes(5);
    struct asked *outside =
        comes(commit_of("commit", "other", NULL, LEAT_CLASSIC_GENERATION_NONE, 2));
    outside->a.r.classic = &outside->a.call;
    const struct leat_group *group = leat_groups_group_find(home->groups, "readers");
    struct leat_group_log *log = leat_group_log_add((struct leat_group *)(uintptr_t)group,
                                                    (struct leat_log_ref){STREAM, 1, 1});
    assert_int_equal(leat_group_offset_note(log, 0, "n", 1), LEAT_OK);
    leat_group_bytes_count((struct leat_group *)(uintptr_t)group);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_group_encode(&writer, group, true);
    leat_mem_fail_at(0);
    uint64_t allocations = 1;
    for (uint64_t n = 0; n <= allocations; n++) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, bytes, writer.used);
        leat_mem_fail_at(n);
        struct leat_group *again = leat_group_decode(&reader);
        if (n == 0) allocations = leat_mem_calls();
        leat_mem_fail_at(0);
        assert_int_equal(again == NULL, n > 0);
        if (!again) continue;
        assert_int_equal(again->classic->member_count, 2);
        assert_int_equal(again->logs[0].metadata_bytes, 1);
        assert_int_equal(again->classic->assigned_bytes, 8);
        leat_group_destroy(&again);
    }
    assert_true(allocations > 8);
    for (uint32_t cut = 1; cut < writer.used; cut++) { /* each part of it is none */
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, bytes, writer.used - cut);
        assert_null(leat_group_decode(&reader));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(log_that_takes_nothing_is_asked_again),
        HOME_TEST(log_that_acks_nothing_is_told_of),
        HOME_TEST(log_that_fails_breaks_its_home),
        HOME_TEST(home_that_was_followed_asks_its_log_first),
        HOME_TEST(static_members_come_again),
        HOME_TEST(nameless_member_is_told_its_name),
        HOME_TEST(joins_are_cancelled),
        HOME_TEST(stored_group_is_taken_whole_or_not_at_all),
    };
    return cmocka_run_group_tests_name("groups-hard", tests, NULL, nothing_left);
}
