/* Whose turn it is to have a compressed batch checked, which costs a core a thousand times what an append costs. In a
 * turn of the event loop so much is uncompressed, and what one batch more takes. Whoever comes then waits as one who
 * finds no room in a log does, and is let in once before all who come later. */
#include "wire/unpack.h"
#include "base/mem.h"
#include "broker/append.h"

enum { UNPACK_TURN_BYTES = 1024 * 1024 }; /* 1 to 3 ms */

leat_err leat_unpack_init(struct leat_core *core)
{
    leat_list_init(&core->unpack_waits);
    core->unpack_left = UNPACK_TURN_BYTES;
    core->unpacker = leat_unpacker_create();
    return core->unpacker != NULL ? LEAT_OK : LEAT_E_NO_MEMORY;
}

void leat_unpack_fini(struct leat_core *core)
{
    leat_unpacker_destroy(core->unpacker);
}

void leat_unpack_turn_end(struct leat_core *core)
{
    core->unpack_left = UNPACK_TURN_BYTES;
}

/* Each is let in once; who is not reached in this turn stands in line again, before who has not been. */
static void unpack_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    (void)mail;
    core->unpack_mailed = false;
    struct leat_list now;
    leat_list_init(&now);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&core->unpack_waits)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL) {
        struct leat_hosted *hosted = LEAT_CONTAINER(link, struct leat_hosted, unpack);
        hosted->unpack_due = true;
        leat_append_on_room(hosted);
    }
}

static bool unpack_admits(struct leat_hosted *hosted)
{
    struct leat_core *core = hosted->core;
    bool first = hosted->unpack_due || leat_list_empty(&core->unpack_waits);
    if (core->unpack_left > 0 && first) {
        hosted->unpack_due = false;
        return true;
    }
    if (leat_list_empty(&hosted->unpack)) leat_list_push_back(&core->unpack_waits, &hosted->unpack);
    if (!core->unpack_mailed) {
        core->unpack_mailed = true;
        leat_core_mail(core, core->index, &core->unpack_mail, unpack_deliver);
    }
    return false;
}

leat_err leat_unpack_check(struct leat_hosted *hosted, const uint8_t *bytes, size_t count,
                           struct leat_batch *out_batch, struct leat_error *error)
{
    struct leat_core *core = hosted->core;
    bool compressed = leat_batch_codec(bytes, count) != LEAT_CODEC_NONE &&
                      hosted->stream->desc->settings.validate == LEAT_VALIDATE_FULL;
    if (compressed && !unpack_admits(hosted)) return LEAT_E_AGAIN;
    leat_err rc = leat_batch_check(bytes, count, out_batch, error);
    if (rc != LEAT_OK || !compressed) return rc;
    size_t cost;
    rc = leat_unpacker_check(core->unpacker, out_batch, &cost, error);
    core->unpack_left -= (int64_t)cost;
    return rc;
}
