/* SPDX-License-Identifier: Apache-2.0 */
/* One way to compute AEGISMAC-128X2: see aegis.h. aegis.c includes this file once for each kind of register, so there
 * is no guard. Before each include, aegis.c defines
 *
 *   PATH(name)       the name with the path's own prefix
 *   PATH_TARGET      the attribute that allows the instructions
 *   PATH_REGS        registers for one block of both lanes
 *   PATH(reg)        such a register, PATH(loose) the same at any address
 *   PATH(update)()   one step of the state
 *
 * Thread: any.
 */

/* At the start both lanes have the same block of 16 bytes. */
static inline PATH_TARGET void PATH(both)(PATH(reg) out[PATH_REGS], const uint8_t block[16])
{
    uint8_t bytes[32];
    memcpy(bytes, block, 16);
    memcpy(bytes + 16, block, 16);
    memcpy(out, bytes, sizeof bytes);
}

static inline PATH_TARGET void PATH(absorb)(PATH(reg) s[8][PATH_REGS], const uint8_t bytes[64])
{
    PATH(reg) m[2][PATH_REGS];
    const PATH(loose) *from = (const PATH(loose) *)(const void *)bytes;
    for (unsigned i = 0; i < PATH_REGS; i++) {
        m[0][i] = from[i];
        m[1][i] = from[PATH_REGS + i];
    }
    PATH(update)(s, m);
}

static inline PATH_TARGET void PATH(start)(PATH(reg) s[8][PATH_REGS], const uint8_t key[16],
                                           const uint8_t nonce[16])
{
    PATH(reg) c0[PATH_REGS], c1[PATH_REGS], lanes[PATH_REGS], m[2][PATH_REGS];
    PATH(both)(c0, aegis_c0);
    PATH(both)(c1, aegis_c1);
    PATH(both)(m[0], nonce);
    PATH(both)(m[1], key);
    memcpy(lanes, aegis_lanes, sizeof aegis_lanes);
    for (unsigned i = 0; i < PATH_REGS; i++) {
        s[0][i] = s[4][i] = m[1][i] ^ m[0][i];
        s[1][i] = s[3][i] = c1[i];
        s[2][i] = c0[i];
        s[5][i] = s[7][i] = m[1][i] ^ c0[i];
        s[6][i] = m[1][i] ^ c1[i];
    }
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < PATH_REGS; i++) {
            s[3][i] ^= lanes[i];
            s[7][i] ^= lanes[i];
        }
        PATH(update)(s, m);
    }
}

/* Seven steps of what is in the state and these sixteen bytes; then the tag of each lane. */
static inline PATH_TARGET void PATH(close)(PATH(reg) s[8][PATH_REGS], const uint8_t mixed[32],
                                           uint8_t out[32])
{
    PATH(reg) m[2][PATH_REGS];
    memcpy(m[0], mixed, 32);
    for (unsigned i = 0; i < PATH_REGS; i++)
        m[0][i] = m[1][i] = m[0][i] ^ s[2][i];
    for (unsigned round = 0; round < 7; round++)
        PATH(update)(s, m);
    for (unsigned i = 0; i < PATH_REGS; i++)
        m[0][i] = s[0][i] ^ s[1][i] ^ s[2][i] ^ s[3][i] ^ s[4][i] ^ s[5][i] ^ s[6][i];
    memcpy(out, m[0], 32);
}

/* FinalizeMac: the tags of both lanes go into the first lane, and its tag is the message's tag. The second lane goes
 * on with unused values. */
static inline PATH_TARGET void PATH(finish)(PATH(reg) s[8][PATH_REGS], uint64_t bytes,
                                            uint8_t out_tag[16])
{
    uint8_t mixed[32], tags[32], padded[64] = {0};
    for (unsigned lane = 0; lane < 2; lane++) {
        leat_put_le64(mixed + 16 * lane, 8 * bytes);
        leat_put_le64(mixed + 16 * lane + 8, 8 * LEAT_AEGIS_TAG_BYTES);
    }
    PATH(close)(s, mixed, tags);
    memcpy(padded, tags, 16);
    memcpy(padded + 32, tags + 16, 16);
    PATH(absorb)(s, padded);
    leat_put_le64(mixed, 2); /* lanes */
    PATH(close)(s, mixed, tags);
    memcpy(out_tag, tags, 16);
}

static PATH_TARGET void PATH(tag)(const uint8_t key[16], const uint8_t nonce[16],
                                  const struct leat_iov *iovs, unsigned iov_count,
                                  uint8_t out_tag[16])
{
    PATH(reg) s[8][PATH_REGS];
    uint8_t part[64];
    size_t have = 0;
    uint64_t bytes = 0;
    PATH(start)(s, key, nonce);
    for (unsigned i = 0; i < iov_count; i++) {
        const uint8_t *at = iovs[i].base;
        size_t left = iovs[i].bytes;
        bytes += left;
        if (have > 0) {
            size_t more = left < sizeof part - have ? left : sizeof part - have;
            if (more > 0) memcpy(part + have, at, more);
            have += more;
            if (have < sizeof part) continue;
            PATH(absorb)(s, part);
            at += more;
            left -= more;
        }
        for (; left >= sizeof part; left -= sizeof part, at += sizeof part)
            PATH(absorb)(s, at);
        if (left > 0) memcpy(part, at, left);
        have = left;
    }
    if (have > 0) {
        memset(part + have, 0, sizeof part - have);
        PATH(absorb)(s, part);
    }
    PATH(finish)(s, bytes, out_tag);
}

#undef PATH
#undef PATH_TARGET
#undef PATH_REGS
