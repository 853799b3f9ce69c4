/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration file: any text is taken or refused with a sentence, and what is taken is within the
 * limits that the rest of leatd relies on. */
#include "fuzz.h"

#include "tools/leatd/config.h"

static void text_ends(const char *text, size_t bytes)
{
    LEAT_ASSERT(memchr(text, 0, bytes) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct leatd_config config;
    struct leat_error error = {LEAT_OK, ""};
    char *text = malloc(size + 1);
    LEAT_ASSERT(text != NULL);
    if (size) memcpy(text, data, size);
    text[size] = 0; /* as a file that is read whole */
    leatd_config_default(&config);
    leat_err rc = leatd_config_text(text, &config, &error);
    text_ends(config.data, sizeof config.data);
    text_ends(config.listen, sizeof config.listen);
    text_ends(config.node, sizeof config.node);
    if (rc == LEAT_OK) {
        LEAT_ASSERT(config.cores <= 64 && config.memory_bytes <= UINT64_MAX / 2);
        LEAT_ASSERT(config.scrub_bytes_per_second <= UINT64_MAX / 2);
    } else {
        LEAT_ASSERT(error.code == rc && error.text[0] != 0);
        text_ends(error.text, sizeof error.text);
    }
    free(text);
    return 0;
}
