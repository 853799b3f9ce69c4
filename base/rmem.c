/* SPDX-License-Identifier: Apache-2.0 */
/* Grants, and what all writer ports check. */
#include "rmem.h"

#include "assert.h"

#include <string.h>

enum { SECTION_HEADER_BYTES = 2, SECTION_BODY_BYTES_MAX = 255 };

bool leat_rmem_grant_add(struct leat_rmem_grant *grant, enum leat_rmem_kind kind, const void *body,
                         size_t body_bytes)
{
    if (body_bytes > SECTION_BODY_BYTES_MAX ||
        grant->bytes + SECTION_HEADER_BYTES + body_bytes > LEAT_RMEM_GRANT_BYTES_MAX)
        return false;
    uint8_t *at = grant->data + grant->bytes;
    at[0] = (uint8_t)kind;
    at[1] = (uint8_t)body_bytes;
    memcpy(at + SECTION_HEADER_BYTES, body, body_bytes);
    grant->bytes += (uint32_t)(SECTION_HEADER_BYTES + body_bytes);
    return true;
}

const uint8_t *leat_rmem_grant_find(const struct leat_rmem_grant *grant, enum leat_rmem_kind kind,
                                    size_t *out_body_bytes)
{
    if (grant->bytes > LEAT_RMEM_GRANT_BYTES_MAX) return NULL;
    for (size_t at = 0; at + SECTION_HEADER_BYTES <= grant->bytes;) {
        size_t body_bytes = grant->data[at + 1];
        if (at + SECTION_HEADER_BYTES + body_bytes > grant->bytes) return NULL;
        if (grant->data[at] == (uint8_t)kind) {
            *out_body_bytes = body_bytes;
            return grant->data + at + SECTION_HEADER_BYTES;
        }
        at += SECTION_HEADER_BYTES + body_bytes;
    }
    return NULL;
}

leat_err leat_rmem_grant_address(const struct leat_rmem_grant *grant,
                                 struct leat_rmem_address *out_address)
{
    size_t bytes = 0;
    struct leat_rmem_address address;
    const uint8_t *body = leat_rmem_grant_find(grant, LEAT_RMEM_NONE, &bytes);
    if (!body || bytes != sizeof address) return LEAT_E_INVALID;
    memcpy(&address, body, sizeof address);
    uint64_t limit_max = (uint64_t)LEAT_RMEM_STEPS_MAX * LEAT_ARENA_STEP_BYTES;
    if (address.number == 0 || address.zero != 0 || address.limit_bytes == 0 ||
        address.limit_bytes > limit_max || address.limit_bytes % LEAT_ARENA_STEP_BYTES != 0)
        return LEAT_E_INVALID;
    *out_address = address;
    return LEAT_OK;
}

leat_err leat_rmem_write_check(const struct leat_rmem_target *target, struct leat_rmem_write *write,
                               uint64_t limit_bytes)
{
    LEAT_ASSERT(write->on_done != NULL);
    if (!target->attached || target->failed) return LEAT_E_CLOSED;
    if (write->iov_count == 0 || write->iov_count > LEAT_RMEM_IOVS_MAX) return LEAT_E_INVALID;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < write->iov_count; i++) {
        if (write->iovs[i].bytes > LEAT_RMEM_WRITE_BYTES_MAX) return LEAT_E_TOO_LARGE;
        bytes += write->iovs[i].bytes;
    }
    if (bytes == 0) return LEAT_E_INVALID;
    if (bytes > LEAT_RMEM_WRITE_BYTES_MAX) return LEAT_E_TOO_LARGE;
    if (write->offset > limit_bytes || bytes > limit_bytes - write->offset)
        return LEAT_E_OFFSET_OUT_OF_RANGE;
    write->bytes = (uint32_t)bytes;
    write->rc = LEAT_OK;
    return LEAT_OK;
}

const char *leat_rmem_kind_name(enum leat_rmem_kind kind)
{
    switch (kind) {
    case LEAT_RMEM_RPC:
        return "rpc";
    case LEAT_RMEM_TCP:
        return "tcp";
    case LEAT_RMEM_SHM:
        return "shm";
    case LEAT_RMEM_VERBS:
        return "verbs";
    case LEAT_RMEM_NONE:
    case LEAT_RMEM_KINDS:
        break;
    }
    return "none";
}
