/* SPDX-License-Identifier: Apache-2.0 */
/* Whether bytes are a configuration as libraft encodes one: u8 1, u64 number of servers, and for each server u64 id,
 * address and a zero byte, u8 role.
 *
 * SUBTLE: libraft 0.22.1 does not check where a configuration ends, and after refusing a configuration at a start
 * frees the servers twice. (1) An entry's configuration is cut off; libraft reads on, into the bytes after the entry,
 * and may find servers there. (2) The entry is accepted, and durable. (3) At the next start other bytes follow the
 * entry: libraft refuses the configuration, and the process dies, as at every later start. So libraft gets only
 * configurations that pass this check. */
#include "coordinator/raft/log.h"

#include <raft.h>
#include <string.h>

#include "base/bytes.h"

enum { ENCODING = 1, SERVERS_MAX = 64 };

bool leat_raft_configuration_valid(const uint8_t *bytes, size_t count)
{
    const uint8_t *end = bytes + count, *at = bytes + 9;
    const char *addresses[SERVERS_MAX];
    uint64_t ids[SERVERS_MAX];
    if (count < 9 || bytes[0] != ENCODING) return false;
    uint64_t servers = leat_get_le64(bytes + 1);
    if (servers == 0 || servers > SERVERS_MAX) return false;
    for (uint64_t i = 0; i < servers; i++) {
        if (end - at < 8) return false;
        ids[i] = leat_get_le64(at);
        addresses[i] = (const char *)at + 8;
        const uint8_t *zero = memchr(at + 8, 0, (size_t)(end - at - 8));
        if (ids[i] == 0 || !zero || end - zero < 2 || zero[1] > RAFT_SPARE) return false;
        for (uint64_t j = 0; j < i; j++)
            if (ids[j] == ids[i] || strcmp(addresses[j], addresses[i]) == 0) return false;
        at = zero + 2;
    }
    return true;
}
