/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a node at the primary when something of it changes; each field by itself. */
#include "tests/replication/case_rig.h"

static struct leat_rep_node node;

static void met(void)
{
    begun();
    struct rep_peer *peer = rig_peer(rig, 1);
    node = peer->node;
    peer->cut = true;
    peer->left_us = 7;
    peer->refused = LEAT_E_STALE_EPOCH;
}

static void is_set(void)
{
    calm();
    uint32_t places = rig->primary->places;
    leat_primary_node_set(rig->primary, &node);
    const struct rep_peer *peer = rig->primary->peers[node.number];
    if (!peer) {
        trace("-> not known\n");
        return;
    }
    trace("-> %s of %llu on %s in \"%s\"%s%s%s%s left %llu %s, places %u more, %u attached, %u "
          "copies",
          peer->node.name, (unsigned long long)peer->node.incarnation, peer->node.host,
          peer->node.rack, peer->state != REP_PEER_DOWN ? " up" : "",
          peer->state == REP_PEER_ATTACHED ? " attached" : "", peer->cut ? " cut" : "",
          peer->node.draining ? " draining" : "", (unsigned long long)peer->left_us,
          leat_err_name(peer->refused), rig->primary->places - places, rig->primary->attached_count,
          set->copy_count);
    armed_trace();
}

static void set_name(const char *name)
{
    snprintf(node.name, sizeof node.name, "%s", name);
}

static void set_host(const char *host)
{
    snprintf(node.host, sizeof node.host, "%s", host);
}

static void is_new(void)
{
    node.number = 40;
}

static void goes_down(void)
{
    rig->quiet = true;
    rig_peer_down(rig, 1);
    rig->quiet = false;
}

static void node_is_taken_as_it_is_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(met, is_set);
    CASE(met, is_set, set_name("other"));
    CASE(met, is_set, set_name(""));
    CASE(met, is_set, set_host("h7"));
    CASE(met, is_set, node.rack[0] = 'r');
    CASE(met, is_set, node.draining = true);
    CASE(met, is_set, node.incarnation++);
    CASE(met, is_set, node.incarnation++, goes_down());
    CASE(met, is_set, is_new());
    CASE(met, is_set, is_new(), set_name(""));
    CASE(met, is_set, is_new(), leat_mem_fail_at(1));
    leat_mem_fail_at(0);
    TRACE_IS("(void)0: -> n1 of 101 on h1 in \"\" up attached cut left 7 STALE_EPOCH, places 0 "
             "more, 3 attached, 2 copies\n"
             "set_name(\"other\"): -> other of 101 on h1 in \"\" up attached cut left 7 "
             "STALE_EPOCH, places 0 more, 3 attached, 2 copies\n"
             "set_name(\"\"): -> 0 of 101 on h1 in \"\" up attached cut left 7 STALE_EPOCH, places "
             "0 more, 3 attached, 2 copies\n"
             "set_host(\"h7\"): -> n1 of 101 on h7 in \"\" up attached cut left 7 STALE_EPOCH, "
             "places 1 more, 3 attached, 2 copies\n"
             "node.rack[0] = 'r': -> n1 of 101 on h1 in \"r\" up attached cut left 7 STALE_EPOCH, "
             "places 1 more, 3 attached, 2 copies\n"
             "node.draining = true: -> n1 of 101 on h1 in \"\" up attached cut draining left 7 "
             "STALE_EPOCH, places 1 more, 3 attached, 2 copies\n"
             "node.incarnation++: detach n1\n"
             "-> n1 of 102 on h1 in \"\" up left 0 OK, places 0 more, 2 attached, 1 copies, again "
             "in 0 us\n"
             "node.incarnation++, goes_down(): -> n1 of 102 on h1 in \"\" left 0 OK, "
             "places 0 more, 2 attached, 2 copies\n"
             "is_new(): -> n1 of 101 on h1 in \"\" left 0 OK, places 0 more, 3 attached, 2 copies\n"
             "is_new(), set_name(\"\"): -> 40 of 101 on h1 in \"\" left 0 OK, places 0 more, 3 "
             "attached, 2 copies\n"
             "is_new(), leat_mem_fail_at(1): -> not known\n");
}

static void self_is_no_peer_of_its_own(void **state)
{
    (void)state;
    met();
    node.number = RIG_SELF;
    set_name("me");
    leat_primary_node_set(rig->primary, &node);
    assert_null(rig->primary->peers[RIG_SELF]);
    assert_string_equal(rig->primary->options.self.name, "me");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(node_is_taken_as_it_is_told),
        TRACE_TEST(self_is_no_peer_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
