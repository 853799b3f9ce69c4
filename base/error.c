/* SPDX-License-Identifier: Apache-2.0 */
/* Error names, classes and texts, all made from err.def. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    uint16_t number;
    uint8_t cls;
    const char *name;
    const char *text;
};

static const struct error_row rows[] = {
#define LEAT_ERR(number, name, cls, text) {(number), LEAT_CLASS_##cls, #name, text},
#include "base/err.def"
#undef LEAT_ERR
};

/* Codes arrive from the wire, so an unknown number is an ordinary case. */
static const struct error_row *row_find(leat_err code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].number == (unsigned)code) return &rows[i];
    }
    return NULL;
}

enum leat_err_class leat_err_class(leat_err code)
{
    const struct error_row *row = row_find(code);
    return row ? (enum leat_err_class)row->cls : LEAT_CLASS_FATAL;
}

const char *leat_err_class_name(leat_err code)
{
    switch (leat_err_class(code)) {
    case LEAT_CLASS_NONE:
        return "ok";
    case LEAT_CLASS_RETRY:
        return "retry";
    case LEAT_CLASS_REROUTE:
        return "reroute";
    case LEAT_CLASS_REJECT:
        return "reject";
    case LEAT_CLASS_FATAL:
        break;
    }
    return "fatal";
}

const char *leat_err_name(leat_err code)
{
    const struct error_row *row = row_find(code);
    return row ? row->name : "UNKNOWN_ERROR";
}

const char *leat_err_text(leat_err code)
{
    const struct error_row *row = row_find(code);
    return row ? row->text : "an error that this version does not know";
}

leat_err leat_error_set(struct leat_error *error, leat_err code, const char *format, ...)
{
    if (!error) return code;
    char text[sizeof error->text]; /* what is in *error may be among the arguments */
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = 0;
    va_end(args);
    error->code = code;
    memcpy(error->text, text, strlen(text) + 1);
    return code;
}
