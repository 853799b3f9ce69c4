/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes, their classes, and an error with its sentence. */
#ifndef LEAT_BASE_ERROR_H
#define LEAT_BASE_ERROR_H

#include "types.h"

typedef enum leat_err {
#define LEAT_ERR(number, name, cls, text) LEAT_E_##name = (number),
#include "err.def"
#undef LEAT_ERR
} leat_err;
#define LEAT_OK LEAT_E_OK

enum leat_err_class {
    LEAT_CLASS_NONE,
    LEAT_CLASS_RETRY,
    LEAT_CLASS_REROUTE,
    LEAT_CLASS_REJECT,
    LEAT_CLASS_FATAL,
};

#define LEAT_NODISCARD         __attribute__((warn_unused_result))
#define LEAT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { LEAT_ERROR_TEXT_BYTES = 256 };

/* A refusal as a user sees it: the code, and a sentence with the cause and, where there is one, the
 * fix. */
struct leat_error {
    leat_err code;
    char text[LEAT_ERROR_TEXT_BYTES];
};

/** The class of a code. Unknown codes are FATAL. Thread: any. */
enum leat_err_class leat_err_class(leat_err code);
/** "retry", "reroute", "reject", "fatal" or "ok". Thread: any. */
const char *leat_err_class_name(leat_err code);
/** Upper-case name, "SEQUENCE_GAP"; "UNKNOWN_ERROR" for a number that is none. Thread: any. */
const char *leat_err_name(leat_err code);
/** The general sentence of a code. Thread: any. */
const char *leat_err_text(leat_err code);

/** Fill *error (may be NULL) with code and a formatted sentence; returns code. Truncates. What *error
 * says may be among the arguments. Thread: any. */
leat_err leat_error_set(struct leat_error *error, leat_err code, const char *format, ...)
    LEAT_PRINTF(3, 4);

#endif
