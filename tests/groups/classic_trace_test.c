/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of Kafka clients, exhaustively: each request at each moment, and the home's state after it. */
#include "home_trace.h"

/* session 200 ms, rebalance 300 ms; metadata "m" of protocol "range", and of "sticky" "s". */
static struct asked *joins(const char *name, const char *member, const char *instance)
{
    struct asked *it = asks(name, LEAT_GROUPS_CLASSIC_JOIN, "readers");
    it->protocols[0] = (struct leat_classic_protocol){text("range"), text("m")};
    it->protocols[1] = (struct leat_classic_protocol){text("sticky"), text("s")};
    it->a.r.classic = &it->a.call;
    it->a.r.session_ms = 200;
    it->a.r.address = 9;
    snprintf(it->a.r.member, sizeof it->a.r.member, "%s", member);
    it->a.call = (struct leat_classic_call){.instance = text(instance),
                                            .client = text("tester"),
                                            .host = text("/127.0.0.1"),
                                            .rebalance_ms = 300,
                                            .needs_id = true,
                                            .can_skip = true,
                                            .protocols = it->protocols,
                                            .protocol_count = 2,
                                            .protocol_type = text("consumer")};
    return it;
}
static struct asked *of_group(const char *name, enum leat_groups_kind kind, const struct asked *as)
{
    struct asked *it = asks(name, kind, "readers");
    it->a.r.classic = &it->a.call;
    it->a.r.address = 9;
    if (as) memcpy(it->a.r.member, as->a.r.member, sizeof it->a.r.member);
    if (as) it->a.r.generation = as->a.r.generation;
    return it;
}
/* Everybody of whom it was told gets "to" and the name's end. */
static struct asked *syncs(const char *name, const struct asked *as, bool leads)
{
    struct asked *it = of_group(name, LEAT_GROUPS_CLASSIC_SYNC, as);
    for (uint32_t i = 0; i < as->a.call.member_count && leads; i++) {
        struct leat_msg_string id = as->a.call.members[i].member;
        it->a.shares[i] = (struct leat_classic_share){id, {id.text + id.bytes - 4, 4}};
        it->a.call.share_count = i + 1;
    }
    it->a.call.shares = it->a.shares;
    return it;
}
static struct asked *leaves(const char *name, const char *member, const char *instance)
{
    struct asked *it = of_group(name, LEAT_GROUPS_CLASSIC_LEAVE, NULL);
    it->a.leaver = (struct leat_classic_leaver){text(member), text(instance), LEAT_OK};
    it->a.call.leavers = &it->a.leaver;
    it->a.call.leaver_count = 1;
    return it;
}
static struct asked *commits(const char *name, const struct asked *as, uint32_t generation,
                             uint64_t offset)
{
    struct asked *it = of_group(name, LEAT_GROUPS_COMMIT, as);
    it->a.r.generation = generation;
    it->a.r.commits = it->rows;
    it->a.r.commit_count = 1;
    it->rows[0] = (struct leat_groups_offset){.log = {7, 1, 0},
                                              .group = LEAT_SEGMENT_GROUP_NONE,
                                              .offset = offset,
                                              .leader_epoch_plus_1 = 4,
                                              .metadata = "note",
                                              .metadata_bytes = 4};
    return it;
}

static const struct asked *one_comes(void)
{
    struct asked *first = comes(joins("a", "", ""));
    show();
    TRACE_IS(" batch 0:2:26c5e4dd\n"
             " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 0 of 1 "
             "acked\n");
    passes(4);
    show();
    TRACE_IS(" a: 48 join again under the member id that this answer gives member a3a7\n"
             " home timer +197 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 0 next 1 of 9, 685 bytes\n"
             "  empty '' '' leader  settle - give up - sync by -; 105 stored, 0 of members, 0 "
             "shared out\n"
             "  a3a7 pending of 9 session 200 rebalance 300 until +197 '' '' '' has ''\n");
    struct asked *a = comes(joins("a", first->a.r.member, ""));
    show();
    TRACE_IS(" home timer +30 waiting 1 querying 0 reading 0 of 1; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 0 next 1 of 9, 685 bytes used +0\n"
             "  preparing first 'consumer' '' leader  settle +30 give up +300 sync by -; 273 "
             "stored, 93 of members, 0 shared out\n"
             "  a3a7 joins of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' "
             "range=m sticky=s has ''\n");
    passes(40);
    show();
    TRACE_IS(" a: 0  generation 1 member a3a7 170 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             "  row a3a7 '' 'tester' '/127.0.0.1' 'm' ''\n"
             " batch 4:175:5aa113a1\n"
             " home timer +190 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used -10\n"
             "  completing first 'consumer' 'range' leader a3a7 settle -10 give up +260 sync by "
             "+290; 321 stored, 93 of members, 0 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +190 '' 'tester' '/127.0.0.1' range=m "
             "sticky=s has ''\n");
    return a;
}

static void one_shares_out(const struct asked *a)
{
    comes(of_group("beat", LEAT_GROUPS_CLASSIC_HEARTBEAT, a));
    comes(commits("too early", a, a->a.r.generation, 5));
    comes(of_group("describe", LEAT_GROUPS_DESCRIBE, NULL));
    comes(syncs("sync", a, true));
    show();
    TRACE_IS(
        " beat: 0  generation 1 member a3a7\n"
        " too early: 47 the group is being shared out anew generation 1 member a3a7\n"
        " describe: 0  generation 1 170 bytes\n"
        "  'consumer' 'range'\n"
        "  row a3a7 '' 'tester' '/127.0.0.1' 'm' ''\n"
        "  phase 2 mode 2\n"
        " batch 4:179:3ed89997\n"
        " home timer +100 waiting 1 querying 0 reading 0 of 1; gathers 0 in flight, 2 of 3 acked\n"
        " readers mode 2 generation 1 next 1 of 9, 685 bytes used +0\n"
        "  stable first 'consumer' 'range' leader a3a7 settle -10 give up +260 sync by +290; 325 "
        "stored, 97 of members, 4 shared out\n"
        "  a3a7 of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' range=m "
        "sticky=s has 'a3a7'\n");
    passes(4);
    comes(syncs("sync again", a, false));
    comes(of_group("beat", LEAT_GROUPS_CLASSIC_HEARTBEAT, a));
    comes(commits("commit", a, a->a.r.generation, 5));
    comes(commits("old", a, 9, 5));
    comes(of_group("describe", LEAT_GROUPS_DESCRIBE, NULL));
    show();
    TRACE_IS(
        " sync: 0  generation 1 member a3a7 18 bytes\n"
        "  'consumer' 'range'\n"
        "  assigned a3a7\n"
        " sync again: 0  generation 1 member a3a7 18 bytes\n"
        "  'consumer' 'range'\n"
        "  assigned a3a7\n"
        " beat: 0  generation 1 member a3a7\n"
        " old: 36 the group has another generation: join again generation 9 member a3a7\n"
        " batch 2:24:bcb69c79\n"
        " home timer +100 waiting 2 querying 0 reading 0 of 2; gathers 0 in flight, 3 of 4 acked\n"
        " readers mode 2 generation 1 next 1 of 9, 721 bytes used +0\n"
        "  stable first 'consumer' 'range' leader a3a7 settle -14 give up +256 sync by +286; 325 "
        "stored, 97 of members, 4 shared out\n"
        "  a3a7 of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' range=m "
        "sticky=s has 'a3a7'\n"
        "  7: 1/0=0 at 5 epoch 4 'note'\n");
}

static void one_goes(const struct asked *a)
{
    passes(4);
    comes(joins("a again", a->a.r.member, ""));
    show();
    TRACE_IS(" commit: 0  generation 1 member a3a7\n"
             " describe: 0  generation 1 174 bytes\n"
             "  'consumer' 'range'\n"
             "  row a3a7 '' 'tester' '/127.0.0.1' 'm' 'a3a7'\n"
             "  phase 3 mode 2\n"
             " home timer +0 waiting 1 querying 0 reading 0 of 1; gathers 0, 4 of 4 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 721 bytes used +0\n"
             "  preparing 'consumer' 'range' leader a3a7 settle +0 give up +300 sync by +282; 325 "
             "stored, 97 of members, 4 shared out\n"
             "  a3a7 joins of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n");
    passes(40);
    comes(leaves("leave", a->a.r.member, ""));
    comes(leaves("leave twice", a->a.r.member, ""));
    comes(of_group("describe", LEAT_GROUPS_DESCRIBE, NULL));
    show();
    TRACE_IS(" a again: 0  generation 2 member a3a7 170 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             "  row a3a7 '' 'tester' '/127.0.0.1' 'm' ''\n"
             " leave: 0 \n"
             "  leaver 0\n"
             " leave twice: 0 \n"
             "  leaver 35\n"
             " describe: 0  generation 2 14 bytes\n"
             "  'consumer' ''\n"
             "  phase 0 mode 2\n"
             " batch 4:175:bbcc6b8b\n"
             " home timer +0 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
             " readers mode 2 generation 2 next 1 of 9, 721 bytes used +0\n"
             "  preparing 'consumer' 'range' leader a3a7 settle +0 give up +100 sync by +261; 88 "
             "stored, 0 of members, 4 shared out\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n");
    passes(10);
    comes(commits("from outside", NULL, LEAT_CLASSIC_GENERATION_NONE, 4));
    comes(of_group("list", LEAT_GROUPS_LIST, NULL));
    passes(4);
    comes(asks("fetch", LEAT_GROUPS_FETCH, "readers"));
    show();
    TRACE_IS(" from outside: 0  generation 4294967295\n"
             " list: 0  56 bytes\n"
             "  group 'readers' 'consumer' phase 0 mode 2\n"
             " fetch: 0  generation 3 100 bytes\n"
             "  offset 7/1/0 -1 4 epoch 4 'note'\n"
             " batch 4:29:fa56e9be\n"
             " batch 2:24:f58ae15e\n"
             " home timer +59996 waiting 0 querying 0 reading 0 of 0; gathers 0, 7 of 7 acked\n"
             " readers mode 2 generation 3 next 1 of 9, 721 bytes used -4\n"
             "  empty 'consumer' '' leader  settle -14 give up +86 sync by +87; 40 stored, 0 of "
             "members, 0 shared out\n"
             "  7: 1/0=0 at 4 epoch 4 'note'\n");
}

static void one_member_comes_shares_out_and_goes(void **state)
{
    (void)state;
    const struct asked *a = one_comes();
    one_shares_out(a);
    one_goes(a);
}

/* Two static members with names, b after a; the leader gets both members. */
static struct asked *two[2];
static void two_come(void)
{
    two[0] = comes(joins("a", "", "cellar"));
    passes(4);
    two[1] = joins("b", "", "attic"); /* it would rather have the other protocol */
    two[1]->protocols[0] = (struct leat_classic_protocol){text("sticky"), text("s2")};
    two[1]->protocols[1] = (struct leat_classic_protocol){text("range"), text("m2")};
    comes(two[1]);
    passes(50);
}
static void two_share_out(void)
{
    const struct asked *leader = two[0]->a.call.member_count ? two[0] : two[1];
    comes(syncs("follower", leader == two[0] ? two[1] : two[0], false));
    comes(syncs("leader", leader, true));
    passes(4);
}

static void both_get_their_share(void)
{
    comes(syncs("b", two[1], false));
    show();
    TRACE_IS(" home timer +180 waiting 1 querying 0 reading 0 of 1; gathers 0, 2 of 2 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used +0\n"
             "  completing first 'consumer' 'range' leader a3a7 settle -20 give up +247 sync by "
             "+280; 567 stored, 199 of members, 0 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +180 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has ''\n"
             "  a722 syncs of 9 session 200 rebalance 300 until +200 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has ''\n");
    comes(syncs("b again", two[1], false));
    comes(syncs("a", two[0], true));
    passes(4);
    show();
    TRACE_IS(" b: 8 the member has asked again generation 1 member a722\n"
             " b again: 0  generation 1 member a722 18 bytes\n"
             "  'consumer' 'range'\n"
             "  assigned a722\n"
             " a: 0  generation 1 member a3a7 18 bytes\n"
             "  'consumer' 'range'\n"
             "  assigned a3a7\n"
             " batch 4:294:4b3e0f96\n"
             " home timer +196 waiting 0 querying 0 reading 0 of 0; gathers 0, 3 of 3 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used -4\n"
             "  stable first 'consumer' 'range' leader a3a7 settle -24 give up +243 sync by +276; "
             "575 stored, 207 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +196 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +196 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n");
}

static const struct asked *leaders_next_process_comes(void)
{
    struct asked *again = comes(joins("a's next", "", "cellar"));
    passes(4);
    show();
    TRACE_IS(" a's next: 0  generation 1 member e89d 346 bytes\n"
             "  leader e89d skips\n"
             "  'consumer' 'range'\n"
             "  row e89d 'cellar' 'tester' '/127.0.0.1' 'm' 'a3a7'\n"
             "  row a722 'attic' 'tester' '/127.0.0.1' 'm2' 'a722'\n"
             " batch 4:294:1676c222\n"
             " home timer +192 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used -4\n"
             "  stable first 'consumer' 'range' leader e89d settle -28 give up +239 sync by +272; "
             "575 stored, 207 of members, 8 shared out\n"
             "  e89d of 9 session 200 rebalance 300 until +196 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +192 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n");
    return again;
}

/* With other metadata, so that the group rebalances. */
static void followers_next_process_comes(const struct asked *again)
{
    comes(of_group("old a", LEAT_GROUPS_CLASSIC_HEARTBEAT, two[0]));
    struct asked *other = joins("b's next", "", "attic");
    other->protocols[0].metadata = text("other");
    other->a.r.address = 8;
    other->a.r.session_ms = 250;
    comes(other);
    show();
    TRACE_IS(" old a: 35 not a member of the group (any more): join anew generation 1 member a3a7\n"
             " home timer +196 waiting 1 querying 0 reading 0 of 1; gathers 0, 4 of 4 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used +0\n"
             "  preparing 'consumer' 'range' leader e89d settle +0 give up +300 sync by +272; 577 "
             "stored, 209 of members, 8 shared out\n"
             "  e89d of 9 session 200 rebalance 300 until +196 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  b1d0 joins of 8 session 250 rebalance 300 until +200 'attic' 'tester' '/127.0.0.1' "
             "range=other sticky=s has 'a722'\n");
    comes(of_group("a beats", LEAT_GROUPS_CLASSIC_HEARTBEAT, again));
    passes(100);
    comes(joins("a joins", again->a.r.member, "cellar"));
    passes(10);
    show();
    TRACE_IS(
        " a beats: 47 the group is being shared out anew: join again generation 1 member e89d\n"
        " a joins: 0  generation 2 member e89d 341 bytes\n"
        "  leader e89d\n"
        "  'consumer' 'range'\n"
        "  row e89d 'cellar' 'tester' '/127.0.0.1' 'm' ''\n"
        "  row b1d0 'attic' 'tester' '/127.0.0.1' 'other' ''\n"
        " b's next: 0  generation 2 member b1d0 14 bytes\n"
        "  leader e89d\n"
        "  'consumer' 'range'\n"
        " batch 4:288:2a0b9d85\n"
        " home timer +191 waiting 0 querying 0 reading 0 of 0; gathers 0, 5 of 5 acked\n"
        " readers mode 2 generation 2 next 1 of 9, 685 bytes used -9\n"
        "  completing 'consumer' 'range' leader e89d settle -110 give up +190 sync by +291; 569 "
        "stored, 201 of members, 8 shared out\n"
        "  e89d of 9 session 200 rebalance 300 until +191 'cellar' 'tester' '/127.0.0.1' range=m "
        "sticky=s has ''\n"
        "  b1d0 of 8 session 250 rebalance 300 until +241 'attic' 'tester' '/127.0.0.1' "
        "range=other sticky=s has ''\n");
    passes(350); /* nobody asks for its share */
    show();
    TRACE_IS(" batch 4:29:fa56e9be\n"
             " home timer +59891 waiting 0 querying 0 reading 0 of 0; gathers 0, 6 of 6 acked\n"
             " readers mode 2 generation 3 next 1 of 9, 685 bytes used -109\n"
             "  empty 'consumer' '' leader  settle -159 give up +141 sync by -9; 40 stored, 0 of "
             "members, 0 shared out\n");
}

static void two_members_share_out(void **state)
{
    (void)state;
    two_come();
    show();
    TRACE_IS(" a: 0  generation 1 member a3a7 338 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             "  row a3a7 'cellar' 'tester' '/127.0.0.1' 'm' ''\n"
             "  row a722 'attic' 'tester' '/127.0.0.1' 'm2' ''\n"
             " b: 0  generation 1 member a722 14 bytes\n"
             "  leader a3a7\n"
             "  'consumer' 'range'\n"
             " batch 0:2:26c5e4dd\n"
             " batch 4:286:e9fad9e6\n"
             " home timer +180 waiting 0 querying 0 reading 0 of 0; gathers 0, 2 of 2 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used -20\n"
             "  completing first 'consumer' 'range' leader a3a7 settle -20 give up +247 sync by "
             "+280; 567 stored, 199 of members, 0 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +180 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has ''\n"
             "  a722 of 9 session 200 rebalance 300 until +180 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has ''\n");
    both_get_their_share();
    followers_next_process_comes(leaders_next_process_comes());
}

static void members_that_are_silent_are_dropped(void **state)
{
    (void)state;
    two_come();
    two_share_out();
    trace_begin();
    passes(150);
    comes(of_group("a beats", LEAT_GROUPS_CLASSIC_HEARTBEAT, two[0]));
    show();
    TRACE_IS(" a beats: 0  generation 1 member a3a7\n"
             " batch 0:2:26c5e4dd\n"
             " batch 4:286:e9fad9e6\n"
             " batch 4:294:4b3e0f96\n"
             " home timer +46 waiting 0 querying 0 reading 0 of 0; gathers 0, 3 of 3 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used +0\n"
             "  stable first 'consumer' 'range' leader a3a7 settle -174 give up +93 sync by +126; "
             "575 stored, 207 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +200 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +46 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n");
    passes(60);
    show();
    TRACE_IS(" home timer +140 waiting 0 querying 0 reading 0 of 0; gathers 0, 3 of 3 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 685 bytes used -14\n"
             "  preparing 'consumer' 'range' leader a3a7 settle -14 give up +286 sync by +66; 331 "
             "stored, 103 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +140 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n");
    comes(of_group("a beats", LEAT_GROUPS_CLASSIC_HEARTBEAT, two[0]));
    passes(350);
    show();
    TRACE_IS(
        " a beats: 47 the group is being shared out anew: join again generation 1 member a3a7\n"
        " batch 4:29:436da559\n"
        " home timer +59850 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
        " readers mode 2 generation 2 next 1 of 9, 685 bytes used -150\n"
        "  empty 'consumer' '' leader  settle -364 give up -64 sync by -50; 40 stored, 0 of "
        "members, 0 shared out\n");
    passes(300);
    show();
    TRACE_IS(" home timer +59550 waiting 0 querying 0 reading 0 of 0; gathers 0, 4 of 4 acked\n"
             " readers mode 2 generation 2 next 1 of 9, 685 bytes used -450\n"
             "  empty 'consumer' '' leader  settle -664 give up -364 sync by -350; 40 stored, 0 of "
             "members, 0 shared out\n");
}

static void third_comes_and_gives_up(void)
{
    struct asked *join = comes(joins("c", "", ""));
    join = comes(joins("c", join->a.r.member, ""));
    show();
    leat_groups_cancel(home->groups, &join->a.r);
    show();
    TRACE_IS(" c: 48 join again under the member id that this answer gives member b1d0\n"
             " home timer +197 waiting 1 querying 0 reading 0 of 1; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 721 bytes used +0\n"
             "  preparing 'consumer' 'range' leader a3a7 settle +0 give up +300 sync by +297; 808 "
             "stored, 300 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +197 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +197 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n"
             "  b1d0 joins of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' "
             "range=m sticky=s has ''\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n"
             " c: 8 cancelled member b1d0\n"
             " home timer +197 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 721 bytes used +0\n"
             "  preparing 'consumer' 'range' leader a3a7 settle +0 give up +300 sync by +297; 808 "
             "stored, 300 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +197 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +197 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n"
             "  b1d0 of 9 session 200 rebalance 300 until +200 '' 'tester' '/127.0.0.1' range=m "
             "sticky=s has ''\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n");
}

static void group_is_there_after_a_start(void **state)
{
    (void)state;
    two_come();
    two_share_out();
    comes(commits("commit", two[0], two[0]->a.r.generation, 5));
    passes(4);
    trace_begin();
    home_restart(home);
    comes(of_group("a beats", LEAT_GROUPS_CLASSIC_HEARTBEAT, two[0]));
    passes(4);
    show();
    TRACE_IS(" a beats: 0  generation 1 member a3a7\n"
             " batch 0:2:26c5e4dd\n"
             " batch 4:286:e9fad9e6\n"
             " batch 4:294:4b3e0f96\n"
             " batch 2:24:bcb69c79\n"
             " batch 0:2:26c5e4dd\n"
             " home timer +197 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 721 bytes\n"
             "  stable 'consumer' 'range' leader a3a7 settle -3 give up +297 sync by +297; 575 "
             "stored, 207 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +197 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +197 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n");
    home_roll(home);
    batches_seen = 0;
    home_restart(home);
    comes(syncs("b", two[1], false));
    passes(4);
    comes(of_group("list", LEAT_GROUPS_LIST, NULL));
    show();
    TRACE_IS(" b: 0  generation 1 member a722 18 bytes\n"
             "  'consumer' 'range'\n"
             "  assigned a722\n"
             " list: 0  56 bytes\n"
             "  group 'readers' 'consumer' phase 3 mode 2\n"
             " batch 0:2:26c5e4dd\n"
             " home timer +197 waiting 0 querying 0 reading 0 of 0; gathers 0, 1 of 1 acked\n"
             " readers mode 2 generation 1 next 1 of 9, 721 bytes\n"
             "  stable 'consumer' 'range' leader a3a7 settle -3 give up +297 sync by +297; 575 "
             "stored, 207 of members, 8 shared out\n"
             "  a3a7 of 9 session 200 rebalance 300 until +197 'cellar' 'tester' '/127.0.0.1' "
             "range=m sticky=s has 'a3a7'\n"
             "  a722 of 9 session 200 rebalance 300 until +197 'attic' 'tester' '/127.0.0.1' "
             "sticky=s2 range=m2 has 'a722'\n"
             "  7: 1/0=0 at 5 epoch 4 'note'\n");
    third_comes_and_gives_up();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(one_member_comes_shares_out_and_goes),
        HOME_TEST(two_members_share_out),
        HOME_TEST(members_that_are_silent_are_dropped),
        HOME_TEST(group_is_there_after_a_start),
    };
    return cmocka_run_group_tests_name("groups-group", tests, NULL, nothing_left);
}
