/* SPDX-License-Identifier: Apache-2.0 */
/* Options, output and signals of the `leat` program. */
#include "tools/leat/cli.h"

#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *cli_brokers;

void cli_error(const char *format, ...)
{
    va_list arguments;
    flockfile(stderr); /* lines of several threads do not mix */
    cli_progress_end();
    fputs("leat: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
}

/* ---- options ---- */

static int unknown_option(const char *word, const struct cli_option *options, size_t count)
{
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < count && n < 63; i++)
        names[n++] = options[i].name;
    names[n++] = "help";
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    const char *nearest = leat_nearest_word(bare, names, n);
    if (nearest)
        cli_error("no option --%s; did you mean --%s?", bare, nearest);
    else
        cli_error("no option --%s; see --help", bare);
    return -1;
}

/* 2^63: what is smaller is a whole number of 64 bits, signed too. */
#define NUMBER_MAX 0x1p63

static bool number_parse(const char *text, enum cli_kind kind, uint64_t *out)
{
    static const struct {
        const char *unit;
        double us;
    } times[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno || !(value >= 0 && value < NUMBER_MAX)) return false; /* nor "nan" */
    if (kind == CLI_U64) {
        unsigned long long whole = strtoull(text, &end, 10);
        *out = whole;
        return !*end && !strchr(text, '-');
    }
    if (kind == CLI_BYTES) {
        static const char units[] = "KMGT";
        if (*end) {
            const char *unit = strchr(units, toupper((unsigned char)*end));
            if (!unit || !*unit) return false;
            for (const char *at = units; at <= unit; at++)
                value *= 1024;
            end++;
            if (*end == 'i') end++;
            if (*end == 'B' || *end == 'b') end++;
        }
        if (*end || value >= NUMBER_MAX) return false;
        *out = (uint64_t)value;
        return true;
    }
    double scale = kind == CLI_US ? 1 : 1e3;
    double us = value * (kind == CLI_S ? 1e6 : scale); /* a bare number: the option's own unit */
    if (kind == CLI_SPAN && !*end && value > 0) return false;
    if (*end) {
        us = -1;
        for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
            if (strcmp(end, times[i].unit) == 0) us = value * times[i].us;
        if (us < 0) return false;
    }
    if (us >= NUMBER_MAX) return false;
    *out = (uint64_t)(us / scale + 0.5);
    return true;
}

static bool option_set(const struct cli_option *option, const char *value)
{
    if (option->kind == CLI_TEXT) {
        *(const char **)option->out = value;
        return true;
    }
    if (number_parse(value, option->kind, option->out)) return true;
    static const char *const wanted[] = {
        [CLI_U64] = "a whole number",
        [CLI_BYTES] = "a size such as 65536, 64K or 1G",
        [CLI_S] = "a time such as 5, 500ms or 2m",
        [CLI_MS] = "a time such as 500ms, 10s or 7d",
        [CLI_US] = "a time such as 100us, 5ms or 1s",
        [CLI_SPAN] = "a time with its unit, such as 90s, 12h or 7d",
    };
    cli_error("--%s wants %s, not '%s'", option->name, wanted[option->kind], value);
    return false;
}

static const struct cli_option *option_find(const struct cli_option *options, size_t count,
                                            const char *word, size_t bytes, char letter)
{
    for (size_t i = 0; i < count; i++) {
        if (letter ? options[i].letter == letter
                   : strlen(options[i].name) == bytes && strncmp(options[i].name, word, bytes) == 0)
            return &options[i];
    }
    return NULL;
}

int cli_parse(int argc, char **argv, const struct cli_option *options, size_t count)
{
    int operands = 0;
    for (int i = 0; i < argc; i++) {
        char *word = argv[i];
        if (word[0] != '-' || !word[1]) {
            argv[operands++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            while (++i < argc)
                argv[operands++] = argv[i];
            break;
        }
        const struct cli_option *option;
        char *value = NULL;
        if (word[1] == '-') {
            value = strchr(word, '=');
            size_t bytes = value ? (size_t)(value - word - 2) : strlen(word + 2);
            if (value) value++;
            option = option_find(options, count, word + 2, bytes, 0);
            if (!option) return unknown_option(word + 2, options, count);
        } else {
            option = option_find(options, count, NULL, 0, word[1]);
            if (!option) {
                cli_error("no option -%c; see --help", word[1]);
                return -1;
            }
            if (word[2]) value = word + 2;
        }
        if (option->kind == CLI_FLAG) {
            if (value && word[1] == '-') {
                cli_error("--%s takes no value", option->name);
                return -1;
            }
            *(bool *)option->out = true;
            if (!value) continue;
            /* -ec 3 is -e -c 3: once more, from the next letter on. */
            word[1] = '-';
            argv[i--] = word + 1;
            continue;
        }
        if (!value) value = i + 1 < argc ? argv[++i] : NULL;
        if (!value) {
            cli_error("--%s wants a value", option->name);
            return -1;
        }
        if (!option_set(option, value)) return -1;
    }
    return operands;
}

int cli_compression_parse(const char *text, int *out)
{
    *out = 0;
    if (!text || strcmp(text, "none") == 0) return CLI_OK;
    if (strcmp(text, "lz4") == 0)
        *out = 3;
    else if (strcmp(text, "zstd") == 0)
        *out = 4;
    else {
        cli_error("--compression is none, lz4 or zstd, not '%s'", text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

char cli_unescaped(const char **text)
{
    const char *at = *text;
    char c = *at++;
    if (c == '\\' && *at) {
        c = *at++;
        if (c == 'n')
            c = '\n';
        else if (c == 't')
            c = '\t';
        else if (c == 'r')
            c = '\r';
        else if (c == '0')
            c = 0;
        else if (c == 'x' && hex(at[0]) >= 0 && hex(at[1]) >= 0) {
            c = (char)(hex(at[0]) * 16 + hex(at[1]));
            at += 2;
        }
    }
    *text = at;
    return c;
}

int cli_escapes_check(const char *option, const char *text)
{
    while ((text = strchr(text, '\\')) != NULL) {
        const char *c = text + 1;
        bool known = *c == 'x' ? hex(c[1]) >= 0 && hex(c[2]) >= 0
                               : *c == '\0' || strchr("ntr0", *c) || !isalnum((unsigned char)*c);
        if (!known) {
            cli_error("--%s knows \\n \\t \\r \\0 \\xHH and \\\\, not '%.*s'", option,
                      *c == 'x' ? 4 : 2, text);
            return CLI_USAGE;
        }
        text = *c ? c + 1 : c;
    }
    return CLI_OK;
}

bool cli_in_range(const char *option, uint64_t value, uint64_t least, uint64_t most,
                  const char *unit)
{
    if (value >= least && value <= most) return true;
    cli_error("--%s lies between %" PRIu64 " and %" PRIu64 "%s", option, least, most, unit);
    return false;
}

bool cli_number(const char *option, uint64_t *value, uint64_t least, uint64_t most,
                uint64_t otherwise)
{
    if (*value != CLI_NONE) return cli_in_range(option, *value, least, most, "");
    *value = otherwise;
    return true;
}

bool cli_wants_help(int argc, char **argv, const char *help)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        fputs(help, stdout);
        return true;
    }
    return false;
}

/* ---- output ---- */

static int width(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8: one column per character */
    return columns;
}

void cli_table(const char *const *head, unsigned columns, char *const *rows, size_t count,
               const char *right)
{
    enum { COLUMNS_MAX = 24 };
    int widths[COLUMNS_MAX];
    for (unsigned c = 0; c < columns; c++) {
        widths[c] = width(head[c]);
        for (size_t r = 0; r < count; r++) {
            int w = width(rows[r * columns + c]);
            if (w > widths[c]) widths[c] = w;
        }
    }
    for (size_t r = 0; r <= count; r++) {
        for (unsigned c = 0; c < columns; c++) {
            const char *cell = r == 0 ? head[c] : rows[(r - 1) * columns + c];
            int pad = widths[c] - width(cell);
            bool last = c + 1 == columns;
            if (right[c] == 'r')
                printf("%*s%s", pad, "", cell);
            else
                printf("%s%*s", cell, last ? 0 : pad, "");
            fputs(last ? "\n" : "  ", stdout);
        }
    }
}

char *cli_cell(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) abort();
    va_end(arguments);
    return text;
}

void cli_cells_free(char **cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(cells[i]);
    free(cells);
}

void cli_json_string(FILE *out, const char *text, size_t bytes)
{
    fputc('"', out);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

const char *cli_bytes_text(double bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}

const char *cli_traffic_text(uint64_t records, uint64_t bytes, uint64_t us,
                             char out[CLI_TRAFFIC_BYTES])
{
    char size[32], rate[32];
    double seconds = (double)(us ? us : 1) / 1e6;
    snprintf(out, CLI_TRAFFIC_BYTES, "%" PRIu64 " record%s, %s, %.2f s, %.0f records/s, %s/s",
             records, cli_s(records), cli_bytes_text((double)bytes, size), seconds,
             (double)records / seconds, cli_bytes_text((double)bytes / seconds, rate));
    return out;
}

static bool progress_shown; /* while stderr is locked */

void cli_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO)) return;
    va_list arguments;
    flockfile(stderr);
    fputs("\r\033[K", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    progress_shown = true;
    funlockfile(stderr);
}

int cli_output_errno;

bool cli_output_failed(void)
{
    if (!ferror(stdout)) return false;
    if (!cli_output_errno) cli_output_errno = errno;
    return true;
}

void cli_progress_end(void)
{
    flockfile(stderr);
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
    funlockfile(stderr);
}

static volatile sig_atomic_t interrupted;
static int told_of_signals[2]; /* a pipe: once caught, its first end can be read from */

static void on_signal(int number)
{
    int kept = errno;
    (void)number;
    if (interrupted) _exit(130); /* the second time the user means it */
    interrupted = 1;
    (void)!write(told_of_signals[1], "", 1);
    errno = kept;
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    if (pipe2(told_of_signals, O_CLOEXEC | O_NONBLOCK)) abort();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}

/* SUBTLE: read() alone loses a signal. (1) cli_interrupted() returns false. (2) The signal comes. (3) read() begins,
 * and waits for ever: nothing interrupts it any more. */
bool cli_readable_wait(int fd)
{
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN},
                             {.fd = told_of_signals[0], .events = POLLIN}};
    while (!cli_interrupted() && poll(both, 2, -1) < 0)
        if (errno != EINTR) break; /* read() will return the same error */
    return !cli_interrupted();
}
