/* SPDX-License-Identifier: Apache-2.0 */
/* Leat's client library: what producer.h and consumer.h share. */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_API __attribute__((visibility("default")))

/* Error codes: 0 is success. leat_strerror() gives the sentence, leat_code_name() its name, and
 * leat_code_classify() what to do about it. docs/protocol.md has them all. */
typedef int leat_code;
enum leat_code_class {
    LEAT_DO_NOTHING = 0,
    LEAT_DO_RETRY = 1,
    LEAT_DO_REROUTE = 2,
    LEAT_DO_REJECT = 3,
    LEAT_DO_STOP = 4
};
LEAT_API const char *leat_strerror(leat_code code);
LEAT_API const char *leat_code_name(leat_code code);
LEAT_API enum leat_code_class leat_code_classify(leat_code code);

/* Where functions that may be refused put the sentence for people. */
typedef struct leat_message {
    leat_code code;
    char text[256];
} leat_message;

LEAT_API const char *leat_version(void);

#ifdef __cplusplus
}
#endif
#endif
