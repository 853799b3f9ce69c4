/* SPDX-License-Identifier: Apache-2.0 */
#include "shares_rig.h"

leat_err commit_as(struct home *home, uint64_t address, const char *group, uint32_t log,
                   uint32_t metadata_bytes)
{
    static const char metadata[LEAT_CLASSIC_METADATA_BYTES_MAX];
    struct leat_classic_call call = {0};
    struct leat_groups_offset row = {.log = {7, log, 0},
                                     .group = LEAT_SEGMENT_GROUP_NONE,
                                     .offset = 1,
                                     .leader_epoch_plus_1 = 5,
                                     .metadata = metadata,
                                     .metadata_bytes = metadata_bytes};
    struct leat_groups_request request = {.kind = LEAT_GROUPS_COMMIT,
                                          .address = address,
                                          .generation = LEAT_CLASSIC_GENERATION_NONE,
                                          .commits = &row,
                                          .commit_count = 1,
                                          .classic = &call};
    snprintf(request.group, sizeof request.group, "%s", group);
    return ask(home, &request);
}

bool committed(struct home *home, const char *group, uint32_t log)
{
    struct leat_log_ref ref = {7, log, 0};
    struct leat_groups_request request = {
        .kind = LEAT_GROUPS_FETCH, .logs = &ref, .log_count = 1, .answer_bytes_max = SIZE_MAX};
    snprintf(request.group, sizeof request.group, "%s", group);
    assert_int_equal(ask(home, &request), LEAT_OK);
    bool found = request.offset_count > 0;
    leat_mem_free(request.offsets);
    return found;
}

const char *name(const char *word, unsigned n)
{
    static char text[64];
    snprintf(text, sizeof text, "%s-%u", word, n);
    return text;
}

unsigned commits_until_refused(struct home *home, uint64_t address, const char *word,
                               uint32_t metadata_bytes)
{
    for (unsigned n = 0; n < GROUPS_MAX; n++) {
        leat_err rc = commit_as(home, address, name(word, n), 0, metadata_bytes);
        if (rc == LEAT_E_TOO_MANY) return n;
        assert_int_equal(rc, LEAT_OK);
    }
    fail();
    return 0;
}
