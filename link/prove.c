/* SPDX-License-Identifier: Apache-2.0 */
/* Before any other message: both ends prove that they have the cluster's key.
 *
 *   opener -> acceptor   NONCE [nonce bin32]            in the clear
 *   acceptor -> opener   NONCE [nonce bin32], answer    in the clear; all that a stranger ever learns
 *   opener -> acceptor   HELLO, and from here on every frame of both directions with a tag
 *
 * The keys come from the cluster's key and the bytes of both NONCE frames, so the first frame with a right tag proves
 * its sender: HELLO the opener, its answer the acceptor. The contents of a frame without a right tag are not looked
 * at: the frame ends the connection.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "link/bodies.h"
#include "link/internal.h"
#include "wire/speaker.h"

static const char *const labels[] = {"leat node 3: opener to acceptor",
                                     "leat node 3: acceptor to opener"};

/* ---- frames in the clear ---- */

/* This end's NONCE, kept as part of what both have said. */
bool leat_link_nonce_send(struct leat_link *link, uint32_t request)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    const struct leat_env *env = link->links->env;
    uint8_t nonce[LEAT_NONCE_BYTES], *frame = link->said + link->said_bytes;
    struct leat_msg_writer writer;
    env->random->secret(env->random->ctx, nonce, sizeof nonce);
    leat_msg_writer_init(&writer, frame + LEAT_FRAME_HEADER_BYTES,
                         LINK_NONCE_FRAME_BYTES_MAX - LEAT_FRAME_HEADER_BYTES);
    link_nonce_said_write(&writer, &(struct link_nonce_said){{nonce, sizeof nonce}});
    LEAT_ASSERT(!writer.overflow);
    leat_frame_encode(frame, (enum leat_kind)LEAT_NODE_KIND_NONCE, LEAT_NODE_VERSION_MAX,
                      link->accepted ? LEAT_FRAME_ANSWER : 0, request, (uint32_t)writer.used, 0);
    size_t bytes = LEAT_FRAME_HEADER_BYTES + writer.used;
    link->said_bytes += (uint32_t)bytes;
    /* Copied: nothing of it is under way any more when the connection moves to another actor. */
    return env->net->send_copy(link->net, frame, bytes) == LEAT_OK;
}

/* The other end's. */
static bool nonce_read(struct leat_link *link, const struct leat_frame *frame, const uint8_t *bytes)
{
    struct link_nonce_said said;
    if (frame->kind != LEAT_NODE_KIND_NONCE || frame->payload_bytes != 0 ||
        frame->flags != (link->accepted ? 0 : LEAT_FRAME_ANSWER) ||
        frame->frame_bytes > LINK_NONCE_FRAME_BYTES_MAX)
        return false;
    if (link_nonce_said_decode(frame->control, frame->control_bytes, &said) != LEAT_OK ||
        said.nonce.bytes != LEAT_NONCE_BYTES)
        return false;
    memcpy(link->said + link->said_bytes, bytes, frame->frame_bytes);
    link->said_bytes += frame->frame_bytes;
    return true;
}

/* ---- keys ---- */

static bool keys_make(struct leat_link *link)
{
    const struct leat_key *key = link->links->key;
    unsigned out = link->accepted ? 1 : 0;
    if (leat_mac_create(key, link->said, link->said_bytes, labels[out], &link->mac_out) != LEAT_OK)
        return false;
    return leat_mac_create(key, link->said, link->said_bytes, labels[1 - out], &link->mac_in) ==
           LEAT_OK;
}

void leat_link_keys_drop(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    leat_mac_destroy(&link->mac_in);
    leat_mac_destroy(&link->mac_out);
    link->said_bytes = 0;
}

static void nonce_refuse(struct leat_link *link, const struct leat_frame *frame,
                         const uint8_t *bytes, bool older, bool refused)
{
    char text[LEAT_ERROR_TEXT_BYTES];
    const char *why = "it does not answer as a Leat node of this version does: is this the "
                      "address that its --node-listen says?";
    if (refused)
        why = "that is its port for clients (--listen, 7700): name the one for nodes, its "
              "--node-listen (7701)";
    else if (older)
        why = "it is a node of an older version: upgrade it";
    else if (link->accepted && leat_speaker_of(bytes, frame->frame_bytes) == LEAT_SPEAKER_CLIENT)
        why = leat_speaker_text(LEAT_SPEAKER_CLIENT);
    else if (link->accepted)
        why = LEAT_LINK_OF_AN_OLDER_VERSION;
    if (link->accepted || refused) leat_link_complain(link, why);
    snprintf(text, sizeof text, "%.100s: %s", link->address, why);
    leat_link_cut(link, older ? LEAT_E_UNSUPPORTED : LEAT_E_INVALID, text);
}

void leat_link_nonce_take(struct leat_link *link, const struct leat_frame *frame,
                          const uint8_t *bytes)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    bool sent = true;
    /* No node answers a stranger's nonce by a refusal; a port for clients does. */
    bool refused = !link->accepted && (frame->flags & LEAT_FRAME_ERROR) != 0;
    /* The frame of a nonce is the same in all versions that have nonces; the proof that is made from it is not. */
    bool older =
        !refused && frame->kind == LEAT_NODE_KIND_NONCE && frame->version < LEAT_NODE_VERSION_MIN;
    if (refused || older || !nonce_read(link, frame, bytes)) {
        nonce_refuse(link, frame, bytes, older, refused);
        return;
    }
    if (link->accepted) sent = leat_link_nonce_send(link, frame->request);
    bool ready = sent && keys_make(link);
    leat_link_state_enter(link, LINK_HELLO);
    if (ready && !link->accepted) ready = leat_link_hello_send(link);
    if (!ready) leat_link_cut(link, LEAT_E_NO_MEMORY, "no memory for hello");
}

/* ---- tags ---- */

bool leat_link_frame_check(struct leat_link *link, struct leat_frame *frame, const uint8_t *bytes)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    if (frame->payload_bytes >= LEAT_TAG_BYTES) {
        size_t tagged = frame->frame_bytes - LEAT_TAG_BYTES;
        frame->payload_bytes -= LEAT_TAG_BYTES;
        if (leat_mac_check(link->mac_in, bytes, tagged, bytes + tagged)) return true;
    }
    if (link->state == LINK_UP) {
        leat_link_cut(link, LEAT_E_CORRUPT, "a frame was altered on its way, or is not the peer's");
        return false;
    }
    static const char why[] =
        "its proof is wrong: it has another cluster key than this node. Give all nodes the "
        "same file by --cluster-key";
    leat_link_complain(link, why);
    leat_link_cut(link, LEAT_E_WRONG_CLUSTER, why);
    return false;
}
