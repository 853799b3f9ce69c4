/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a classic group at random against a home log that acks late, refuses, rolls and restarts: they join, share
 * out, commit, are silent, leave, or come back as a new process. A part has never two owners in one generation. */
#include "classic_rig.h"

enum { WALKERS = 5, PARTS = STREAMLETS, GENERATIONS = 4096 };

struct walker {
    enum { OUT, JOINING, SYNCING, IN } at;
    struct ask_group *ask;
    char name[LEAT_GROUPS_MEMBER_BYTES_MAX + 1], instance[16];
    uint32_t generation;
    bool owns[PARTS];
    uint64_t silent_until;
    unsigned version; /* of the metadata: changes now and then */
    char metadata[24];
};
struct group_walk {
    struct home *home;
    struct walker walkers[WALKERS];
    char owners[GENERATIONS][PARTS][LEAT_GROUPS_MEMBER_BYTES_MAX + 1];
    uint64_t committed[PARTS];
    uint32_t newest;
    unsigned shared_out;
    char shares[WALKERS * 4][PARTS];
};

static void walker_fails(struct walker *w, leat_err rc)
{
    w->at = OUT;
    if (rc == LEAT_E_UNKNOWN_MEMBER || rc == LEAT_E_MEMBER_FENCED) w->name[0] = '\0';
}

static void walker_sync(struct group_walk *walk, struct walker *w, struct ask_group *join)
{
    struct ask_group *sync = sync_new(w->name, w->generation);
    sync->call.instance = text(w->instance);
    if (join->call.member_count > 0 && !join->call.skip_assignment) {
        /* The leader: part p goes to member p mod n. An assignment is a string of parts. */
        uint32_t n = join->call.member_count;
        assert_true(n <= WALKERS * 4);
        memset(walk->shares, 0, sizeof walk->shares);
        for (uint32_t m = 0; m < n; m++) {
            uint32_t used = 0;
            for (uint32_t p = 0; p < PARTS; p++)
                if (p % n == m) walk->shares[m][used++] = (char)('A' + p);
            sync->shares[m] =
                (struct leat_classic_share){join->call.members[m].member, {walk->shares[m], used}};
        }
        sync->call.shares = sync->shares;
        sync->call.share_count = n;
    }
    w->at = SYNCING;
    w->ask = sync;
    start(walk->home, sync);
}

static void walker_joined(struct group_walk *walk, struct walker *w)
{
    struct ask_group *join = w->ask;
    w->ask = NULL;
    if (join->r.rc == LEAT_OK || join->r.rc == LEAT_E_MEMBER_ID_REQUIRED)
        memcpy(w->name, join->r.member, sizeof w->name);
    if (join->r.rc == LEAT_OK) {
        assert_true(join->r.generation < GENERATIONS);
        assert_true(join->r.generation >= w->generation);
        w->generation = join->r.generation;
        if (w->generation > walk->newest) walk->newest = w->generation;
        walker_sync(walk, w, join);
    } else {
        walker_fails(w, join->r.rc);
    }
    ask_free(join);
}

/* Never two owners of a part in one generation, whatever crashed in between. */
static void walker_synced(struct group_walk *walk, struct walker *w)
{
    struct ask_group *sync = w->ask;
    w->ask = NULL;
    memset(w->owns, 0, sizeof w->owns);
    if (sync->r.rc != LEAT_OK) {
        walker_fails(w, sync->r.rc);
    } else {
        w->at = IN;
        walk->shared_out++;
        for (uint32_t i = 0; i < sync->call.assignment.bytes; i++) {
            unsigned part = (unsigned)(sync->call.assignment.text[i] - 'A');
            assert_true(part < PARTS);
            w->owns[part] = true;
            char *owner = walk->owners[w->generation][part];
            /* A static member's new process has its place. */
            const char *me = w->instance[0] ? w->instance : w->name;
            if (owner[0] && strcmp(owner, me) != 0)
                fail_msg("part %u has two owners in generation %u", part, w->generation);
            snprintf(owner, LEAT_GROUPS_MEMBER_BYTES_MAX + 1, "%s", me);
        }
    }
    ask_free(sync);
}

static void walker_commits(struct group_walk *walk, struct walker *w)
{
    uint32_t part = (uint32_t)leat_xoshiro_below(&walk->home->rng, PARTS);
    if (!w->owns[part]) return;
    uint64_t offset = walk->committed[part] + 1;
    struct ask_group *a = ask_new(LEAT_GROUPS_COMMIT, w->name, w->generation);
    struct leat_groups_offset row = {
        .log = {7, part, 0}, .group = LEAT_SEGMENT_GROUP_NONE, .offset = offset};
    a->call.instance = text(w->instance);
    a->r.commits = &row;
    a->r.commit_count = 1;
    start(walk->home, a);
    await(walk->home, a);
    if (a->r.rc == LEAT_OK)
        walk->committed[part] = offset;
    else
        walker_fails(w, a->r.rc);
    ask_free(a);
}

static void walker_step(struct group_walk *walk, struct walker *w)
{
    struct home *home = walk->home;
    if (w->ask) {
        if (!w->ask->answered) return;
        if (w->at == JOINING)
            walker_joined(walk, w);
        else
            walker_synced(walk, w);
        return;
    }
    if (home->now_us < w->silent_until) return;
    if (w->at == OUT) {
        if (leat_xoshiro_below(&home->rng, 10) == 0) w->version++;
        snprintf(w->metadata, sizeof w->metadata, "v%u", w->version);
        w->ask = join_new(w->name, w->instance, w->metadata);
        w->ask->call.needs_id = leat_xoshiro_below(&home->rng, 2);
        w->at = JOINING;
        start(home, w->ask);
        return;
    }
    uint64_t dice = leat_xoshiro_below(&home->rng, 50);
    if (dice == 0) {
        (void)leave(home, w->instance[0] ? "" : w->name, w->instance);
        w->name[0] = '\0';
        w->at = OUT;
    } else if (dice == 1) {
        w->silent_until = home->now_us + 5000000;
    } else if (dice == 2 && w->instance[0]) {
        w->name[0] = '\0'; /* a new process in its place */
        w->at = OUT;
    } else if (dice < 15) {
        walker_commits(walk, w);
    } else {
        leat_err rc = beat(home, w->name, w->instance, w->generation);
        if (rc != LEAT_OK) walker_fails(w, rc);
    }
}

static void group_walk_settles(struct group_walk *walk)
{
    bool settled = false;
    for (int i = 0; i < 4000 && !settled; i++) {
        settled = true;
        for (unsigned m = 0; m < WALKERS; m++) {
            struct walker *w = &walk->walkers[m];
            w->silent_until = 0;
            if (w->at != IN) {
                walker_step(walk, w);
            } else {
                leat_err rc = beat(walk->home, w->name, w->instance, w->generation);
                if (rc != LEAT_OK) walker_fails(w, rc);
            }
            settled = settled && w->at == IN && w->generation == walk->newest;
        }
        home_run(walk->home, 10000);
        leat_groups_check(walk->home->groups);
    }
    assert_true(settled);
    for (unsigned p = 0; p < PARTS; p++) {
        unsigned owners = 0;
        for (unsigned m = 0; m < WALKERS; m++)
            owners += walk->walkers[m].owns[p];
        assert_int_equal(owners, 1);
    }
}

static unsigned group_walk_run(uint64_t seed)
{
    struct group_walk *walk = calloc(1, sizeof *walk);
    assert_non_null(walk);
    walk->home = home_new(seed, false);
    struct leat_xoshiro *rng = &walk->home->rng;
    for (unsigned m = 0; m < WALKERS; m += 2)
        snprintf(walk->walkers[m].instance, sizeof walk->walkers[m].instance, "static-%u", m);
    for (int step = 0; step < 1000; step++) {
        walker_step(walk, &walk->walkers[leat_xoshiro_below(rng, WALKERS)]);
        home_run(walk->home, 1000 * leat_xoshiro_below(rng, 60));
        leat_groups_check(walk->home->groups);
        if (leat_xoshiro_below(rng, 60) == 0) home_roll(walk->home);
        if (leat_xoshiro_below(rng, 60) == 0) {
            home_restart(walk->home);
            for (unsigned p = 0; p < PARTS; p++) {
                uint64_t offset = fetched(walk->home, p, NULL);
                assert_true(walk->committed[p] == 0 ||
                            (offset != UINT64_MAX && offset >= walk->committed[p]));
                if (offset != UINT64_MAX) walk->committed[p] = offset;
            }
        }
    }
    group_walk_settles(walk);
    unsigned shared_out = walk->shared_out;
    for (unsigned m = 0; m < WALKERS; m++) {
        if (!walk->walkers[m].ask) continue;
        leat_groups_cancel(walk->home->groups, &walk->walkers[m].ask->r);
        ask_free(walk->walkers[m].ask);
    }
    home_free(walk->home);
    free(walk);
    return shared_out;
}

static void group_random_members_never_share_a_part(void **state)
{
    (void)state;
    unsigned shared_out = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        shared_out += group_walk_run(seed);
    assert_true(shared_out > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_random_members_never_share_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
