/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/os/port_net_rig.h"
#include "base/bytes.h"

#include <stdlib.h>

static void actor_nothing(void *actor)
{
    (void)actor;
}
static const struct leat_actor_ops net_ops = {.on_wake = actor_nothing,
                                              .on_turn_end = actor_nothing};

size_t net_no_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                    size_t *want_bytes)
{
    PORT_CHECK(false); /* the reader never answers */
    return bytes;
}

/* RIGHT listens, then tells LEFT where. */
static void left_start(void *actor, struct leat_mail *mail)
{
    struct net_side *side = actor;
    (void)mail;
    side->test->on_start_left(side->test);
}

static leat_accept_fn accept_fn;
void net_right_listen(void *actor)
{
    struct net_side *side = actor;
    struct net_test *test = side->test;
    struct leat_error error;
    PORT_CHECK(side->env->net->listen(side->env->net->ctx, test->rig->listen_address, accept_fn,
                                      side, test->address, &error) == LEAT_OK);
    test->start_mail.deliver = left_start;
    side->env->post->send(side->env->post->ctx, PORT_LEFT, &test->start_mail);
}

struct net_test *net_test_make(const struct port_family *family, leat_accept_fn on_accept,
                               void (*on_start_left)(struct net_test *test))
{
    struct net_test *test = calloc(1, sizeof *test);
    test->rig = family->make();
    test->on_start_left = on_start_left;
    accept_fn = on_accept;
    struct net_side *sides[3] = {&test->writer, &test->reader, &test->third};
    const unsigned numbers[3] = {PORT_LEFT, PORT_RIGHT, PORT_DISK};
    for (int i = 0; i < 3; i++) {
        sides[i]->test = test;
        sides[i]->env = test->rig->env(test->rig->ctx, numbers[i]);
        test->rig->attach(test->rig->ctx, numbers[i], sides[i], &net_ops,
                          numbers[i] == PORT_RIGHT ? net_right_listen : NULL);
    }
    leat_xoshiro_seed(&test->write_seed, 11);
    leat_xoshiro_seed(&test->read_seed, 11);
    test->body = malloc(BODY_MAX + ROUND_FRAMES);
    struct leat_xoshiro noise;
    leat_xoshiro_seed(&noise, 5);
    for (size_t i = 0; i + 8 <= BODY_MAX + ROUND_FRAMES; i += 8)
        leat_put_le64(test->body + i, leat_xoshiro_next(&noise));
    return test;
}
void net_test_drop(const struct port_family *family, struct net_test *test)
{
    family->drop(test->rig);
    free(test->body);
    free(test);
}
