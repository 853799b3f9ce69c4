/* SPDX-License-Identifier: Apache-2.0 */
/* leatd's flags and configuration file. Every option is one row of a table: a flag "--name value",
 * or a line "name = value" of the file. */
#include "tools/leatd/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/address.h"
#include "base/nearest.h"
#include "base/node_log.h"

const char leatd_help[] =
    "leatd: the Leat stream broker\n"
    "\n"
    "Usage: leatd [OPTION VALUE]...\n"
    "\n"
    "  --data DIR           the data directory (default: $XDG_STATE_HOME/leat, or\n"
    "                       ~/.local/state/leat)\n"
    "  --listen HOST:PORT   address for clients (default: 127.0.0.1:7700; port 0: any)\n"
    "  --cores N            threads that serve clients, 1 to 64 (default: all CPUs)\n"
    "  --memory BYTES       never use more; K, M, G are understood (default: a quarter of RAM)\n"
    "  --config FILE        lines \"name = value\" with the names of these options; flags win\n"
    "  --log-level LEVEL    error, warn, info or debug (default: info)\n"
    "  --auto-create BOOL   clients may create a stream by using it: yes or no (default: yes)\n"
    "  --num-partitions N   partitions of a topic that a Kafka client creates without a number\n"
    "                       (default: 1)\n"
    "  --default-replication-factor N   copies of such a topic (default: 1)\n"
    "  --offsets-retention SECONDS  delete consumer groups and their offsets after this time\n"
    "                       without a member or a commit, at least 60 (default: never)\n"
    "  --hibernate-after SECONDS an idle log gives its buffer back after this time (default: 60)\n"
    "  --connections-per-address N  most connections of clients from one address, on all\n"
    "                       ports together (default: 16384)\n"
    "  --scrub BYTES        bytes per second of closed segments that are checked in the\n"
    "                       background (default: 4M; 0: none)\n"
    "  --kafka HOST:PORT    address for Kafka clients, or off (default: port 9092 of the host\n"
    "                       of --listen, if free)\n"
    "  --kafka-advertise HOST:PORT  address that Kafka clients are told (default: --kafka)\n"
    "  --help, --version\n"
    "\n"
    "A cluster is the same program on several hosts, started in any order:\n"
    "  --node NAME, --name NAME  unique name of this node (default: the host's name)\n"
    "  --coordinators LIST  HOST:PORT,... node addresses of the voters: one, three or five, the\n"
    "                       same list on every node (default: none, a single server)\n"
    "  --node-listen HOST:PORT  address for other nodes (default: the host of --listen, 7701)\n"
    "  --cluster-key FILE   the cluster's key, the same on all nodes; created if it is missing:\n"
    "                       copy it to the other nodes (default: the account's own key, if only\n"
    "                       this machine reaches --node-listen)\n"
    "  --advertise HOST:PORT  address that clients are told (default: --listen)\n"
    "  --rack NAME          rack of this node: copies of a segment are in different racks\n"
    "  --host NAME          machine of this node: copies of a segment are on different machines\n"
    "                       (default: the kernel's boot id)\n"
    "  --replication KIND   transport of copies: auto, verbs, shm or tcp (default: auto)\n"
    "  --ping-ms, --suspect-ms, --confirm-ms N  each node is asked every --ping-ms (25),\n"
    "                       suspected after a silence of --suspect-ms (100), and declared\n"
    "                       crashed after --confirm-ms more (60)\n"
    "\n"
    "When the server is ready it prints one line on standard output; the node log goes to\n"
    "standard error. After SIGTERM, SIGINT or SIGHUP it writes everything to disk and ends.\n"
    "\n"
    "Exit codes: 0 stopped as asked; 1 failed while running; 2 flags or configuration refused;\n"
    "3 the data directory cannot be used (another server uses it, or it is damaged, foreign or\n"
    "not writable); 4 cannot listen on the address; 5 not enough memory.\n";

enum option_kind {
    OPTION_TEXT,
    OPTION_ADDRESS,
    OPTION_DOOR, /* an address, or "off" */
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_BOOL,
    OPTION_SECONDS,
    OPTION_LEVEL,
    OPTION_REPLICATION
};
struct option {
    const char *name;
    enum option_kind kind;
    size_t at, bytes; /* in struct leatd_config */
    uint64_t min, max;
};
#define AT(field) offsetof(struct leatd_config, field), sizeof(((struct leatd_config *)0)->field)
static const struct option options[] = {
    {"data", OPTION_TEXT, AT(data), 0, 0},
    {"listen", OPTION_ADDRESS, AT(listen), 0, 0},
    {"node", OPTION_TEXT, AT(node), 0, 0},
    {"name", OPTION_TEXT, AT(node), 0, 0}, /* as it was called before there were clusters */
    {"coordinators", OPTION_TEXT, AT(coordinators), 0, 0},
    {"node-listen", OPTION_ADDRESS, AT(node_listen), 0, 0},
    {"cluster-key", OPTION_TEXT, AT(cluster_key), 0, 0},
    {"advertise", OPTION_ADDRESS, AT(advertise), 0, 0},
    {"kafka", OPTION_DOOR, AT(kafka), 0, 0},
    {"kafka-advertise", OPTION_ADDRESS, AT(kafka_advertise), 0, 0},
    {"rack", OPTION_TEXT, AT(rack), 0, 0},
    {"host", OPTION_TEXT, AT(host), 0, 0},
    {"replication", OPTION_REPLICATION, AT(replication), 0, 0},
    {"ping-ms", OPTION_COUNT, AT(ping_ms), 5, 60000},
    {"suspect-ms", OPTION_COUNT, AT(suspect_ms), 20, 600000},
    {"confirm-ms", OPTION_COUNT, AT(confirm_ms), 20, 600000},
    {"cores", OPTION_COUNT, AT(cores), 1, LEAT_CORES_MAX},
    {"memory", OPTION_BYTES, AT(memory_bytes), 1, UINT64_MAX / 2},
    {"log-level", OPTION_LEVEL, AT(log_level), 0, 0},
    {"auto-create", OPTION_BOOL, AT(auto_create), 0, 0},
    {"num-partitions", OPTION_COUNT, AT(num_partitions), 1, LEAT_STREAMLETS_MAX},
    {"default-replication-factor", OPTION_COUNT, AT(default_replication_factor), 1,
     LEAT_COPIES_MAX},
    {"offsets-retention", OPTION_SECONDS, AT(offsets_retention_us), 60, 100ull * 365 * 24 * 3600},
    {"hibernate-after", OPTION_SECONDS, AT(hibernate_after_us), 1, 365ull * 24 * 3600},
    {"connections-per-address", OPTION_COUNT, AT(connections_per_address), 1, UINT32_MAX},
    {"scrub", OPTION_BYTES, AT(scrub_bytes_per_second), 0, UINT64_MAX / 2},
};
enum { OPTION_COUNT_ALL = sizeof options / sizeof *options };

static leat_err option_set(const struct option *option, const char *value,
                           struct leatd_config *config, struct leat_error *error);

/* ---- the nearest right name ---- */

static bool option_is_flag_only(const char *name)
{
    return strcmp(name, "config") == 0 || strcmp(name, "help") == 0 || strcmp(name, "version") == 0;
}

/* A flag, or a key of the file. */
static leat_err unknown(bool flag, const char *name, struct leat_error *error)
{
    if (!flag && option_is_flag_only(name))
        return leat_error_set(error, LEAT_E_CONFIG, "\"%s\" is no key of a file, only a flag",
                              name);
    if (strcmp(name, "recovery") == 0) /* that there was once */
        return leat_error_set(error, LEAT_E_CONFIG, "recovery is always on: leave %s out",
                              flag ? "--recovery" : "the key \"recovery\"");
    const char *names[OPTION_COUNT_ALL + 3] = {"config", "help", "version"};
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++)
        names[i + 3] = options[i].name;
    const char *nearest = leat_nearest_word(name, names, OPTION_COUNT_ALL + 3);
    const char *before = flag ? "--" : "\"", *after = flag ? "" : "\"";
    if (nearest == NULL)
        return leat_error_set(error, LEAT_E_CONFIG, "unknown %s %s%.64s%s; leatd --help lists all",
                              flag ? "option" : "key", before, name, after);
    return leat_error_set(error, LEAT_E_CONFIG, "unknown %s %s%.64s%s; did you mean %s%s%s?",
                          flag ? "option" : "key", before, name, after, before, nearest, after);
}

static const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT_ALL; i++)
        if (strcmp(options[i].name, name) == 0) return &options[i];
    return NULL;
}

/* ---- values ---- */

static bool parse_number(const char *text, bool suffixes, uint64_t *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0) return false;
    unsigned shift = 0;
    if (suffixes && *end != '\0') {
        switch (*end) {
        case 'k':
        case 'K':
            shift = 10;
            break;
        case 'm':
        case 'M':
            shift = 20;
            break;
        case 'g':
        case 'G':
            shift = 30;
            break;
        case 't':
        case 'T':
            shift = 40;
            break;
        default:
            return false;
        }
        end++;
        if (strcmp(end, "iB") == 0)
            end += 2;
        else if (strcmp(end, "B") == 0)
            end++;
    }
    if (*end != '\0' || value > UINT64_MAX >> shift) return false;
    *out = (uint64_t)value << shift;
    return true;
}

static bool parse_bool(const char *text, bool *out)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"yes", true}, {"true", true},   {"on", true},   {"1", true},
                 {"no", false}, {"false", false}, {"off", false}, {"0", false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i].text) != 0) continue;
        *out = words[i].value;
        return true;
    }
    return false;
}

static bool parse_level(const char *text, enum leat_node_log_level *out)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (enum leat_node_log_level)i;
        return true;
    }
    return false;
}

static bool parse_replication(const char *text, enum leatd_replication *out)
{
    static const char *const names[] = {"auto", "verbs", "shm", "tcp", "rpc"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (enum leatd_replication)i;
        return true;
    }
    return false;
}

static leat_err text_set(const struct option *option, const char *value, uint8_t *at,
                         struct leat_error *error)
{
    if (value[0] == '\0' || strlen(value) >= option->bytes)
        return leat_error_set(error, LEAT_E_CONFIG, "%s needs a text of 1 to %zu bytes",
                              option->name, option->bytes - 1);
    /* Clients show this text on terminals. */
    if (!leat_node_log_is_text(value, strlen(value)))
        return leat_error_set(error, LEAT_E_CONFIG, "%s may have no control characters",
                              option->name);
    bool off = option->kind == OPTION_DOOR && strcmp(value, "off") == 0;
    struct leat_address_parts parts;
    if (option->kind != OPTION_TEXT && !off && !leat_address_split(value, strlen(value), &parts))
        return leat_error_set(error, LEAT_E_CONFIG, "%s is HOST:PORT%s, not \"%.64s\"",
                              option->name, option->kind == OPTION_DOOR ? " or off" : "", value);
    memset(at, 0, option->bytes);
    memcpy(at, value, strlen(value) + 1);
    return LEAT_OK;
}

static leat_err option_set(const struct option *option, const char *value,
                           struct leatd_config *config, struct leat_error *error)
{
    uint8_t *at = (uint8_t *)config + option->at;
    uint64_t number = 0;
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_ADDRESS:
    case OPTION_DOOR:
        return text_set(option, value, at, error);
    case OPTION_BOOL:
        if (parse_bool(value, (bool *)at)) return LEAT_OK;
        return leat_error_set(error, LEAT_E_CONFIG, "%s is yes or no, not \"%.64s\"", option->name,
                              value);
    case OPTION_LEVEL:
        if (parse_level(value, &config->log_level)) return LEAT_OK;
        return leat_error_set(error, LEAT_E_CONFIG,
                              "%s is error, warn, info or debug, not \"%.64s\"", option->name,
                              value);
    case OPTION_REPLICATION:
        if (parse_replication(value, &config->replication)) return LEAT_OK;
        return leat_error_set(error, LEAT_E_CONFIG, "%s is auto, verbs, shm or tcp, not \"%.64s\"",
                              option->name, value);
    case OPTION_COUNT:
    case OPTION_BYTES:
    case OPTION_SECONDS:
        break;
    }
    bool bytes = option->kind == OPTION_BYTES;
    if (!parse_number(value, bytes, &number))
        return leat_error_set(error, LEAT_E_CONFIG, "%s needs a whole number%s, not \"%.64s\"",
                              option->name, bytes ? " of bytes (K, M, G are understood)" : "",
                              value);
    if (number < option->min || number > option->max)
        return leat_error_set(error, LEAT_E_CONFIG, "%s has to lie in %llu to %llu, not %s",
                              option->name, (unsigned long long)option->min,
                              (unsigned long long)option->max, value);
    if (option->kind == OPTION_COUNT) {
        uint32_t count = (uint32_t)number;
        memcpy(at, &count, sizeof count);
    } else {
        if (option->kind == OPTION_SECONDS) number *= 1000000;
        memcpy(at, &number, sizeof number);
    }
    return LEAT_OK;
}

/* ---- the file ---- */

enum { LINE_BYTES_MAX = INI_MAX_LINE - 2 }; /* without its newline; one byte is inih's */

struct file_reader {
    struct leatd_config *config;
    bool seen[OPTION_COUNT_ALL];
    struct leat_error error;
};

static int file_line(void *user, const char *section, const char *name, const char *value)
{
    struct file_reader *reader = user;
    if (reader->error.code != LEAT_OK) return 0;
    if (section != NULL && section[0] != '\0' && strcmp(section, "leatd") != 0) {
        leat_error_set(
            &reader->error, LEAT_E_CONFIG,
            "\"%.64s\" is in the section [%.64s]; only [leatd] is known, and none is needed", name,
            section);
        return 0;
    }
    const struct option *option = option_find(name);
    if (option == NULL) {
        (void)unknown(false, name, &reader->error);
        return 0;
    }
    if (reader->seen[option - options]) {
        leat_error_set(&reader->error, LEAT_E_CONFIG,
                       "\"%s\" is there twice: which one is meant is not known", option->name);
        return 0;
    }
    reader->seen[option - options] = true;
    return option_set(option, value, reader->config, &reader->error) == LEAT_OK;
}

static leat_err file_result(int line, const char *path, struct file_reader *reader,
                            struct leat_error *error)
{
    if (line == 0) return LEAT_OK;
    if (line < 0)
        return leat_error_set(error, LEAT_E_CONFIG, "can't read the configuration %s: %s", path,
                              strerror(errno));
    return leat_error_set(error, LEAT_E_CONFIG, "%s, line %d: %s", path, line,
                          reader->error.code != LEAT_OK ? reader->error.text
                                                        : "this is not \"name = value\"");
}

/* inih reads a directory as an empty file, and cuts a line that is too long for it in two. */
static leat_err file_check(const char *path, struct leat_error *error)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode)) /* it is read twice, and may have no writer */
        return leat_error_set(error, LEAT_E_CONFIG, "can't read the configuration %s: it is a pipe",
                              path);
    FILE *file = fopen(path, "re");
    int c = file != NULL ? getc(file) : EOF, line = 1;
    bool fails = file == NULL || ferror(file);
    int cause = errno;
    bool cut = false;
    for (int bytes = 0; c != EOF && !cut; c = getc(file)) {
        bytes = c == '\n' ? 0 : bytes + 1;
        line += c == '\n';
        cut = bytes > LINE_BYTES_MAX;
    }
    if (file != NULL) (void)fclose(file); /* only read */
    if (fails)
        return leat_error_set(error, LEAT_E_CONFIG, "can't read the configuration %s: %s", path,
                              strerror(cause));
    if (!cut) return LEAT_OK;
    return leat_error_set(error, LEAT_E_CONFIG,
                          "%s, line %d: longer than %d bytes: say it by a flag", path, line,
                          LINE_BYTES_MAX);
}

/* Without the blanks before the name: inih would take the line for more of the value above. */
static char *line_read(char *text, int capacity, void *file)
{
    char *line = fgets(text, capacity, file);
    size_t blanks = line != NULL ? strspn(line, " \t") : 0;
    if (blanks > 0) memmove(line, line + blanks, strlen(line + blanks) + 1);
    return line;
}

leat_err leatd_config_read(const char *path, struct leatd_config *config, struct leat_error *error)
{
    struct file_reader reader = {.config = config};
    leat_err rc = file_check(path, error);
    if (rc != LEAT_OK) return rc;
    FILE *file = fopen(path, "re");
    int line = file != NULL ? ini_parse_stream(line_read, file, file_line, &reader) : -1;
    if (file != NULL) (void)fclose(file); /* only read */
    return file_result(line, path, &reader, error);
}

leat_err leatd_config_text(const char *text, struct leatd_config *config, struct leat_error *error)
{
    struct file_reader reader = {.config = config};
    return file_result(ini_parse_string(text, file_line, &reader), "configuration", &reader, error);
}

/* ---- flags ---- */

void leatd_config_default(struct leatd_config *config)
{
    memset(config, 0, sizeof *config);
    memcpy(config->listen, "127.0.0.1:7700", sizeof "127.0.0.1:7700");
    config->log_level = LEAT_NODE_LOG_INFO;
    config->auto_create = true;
    config->scrub_bytes_per_second = 4 * 1024 * 1024;
}

/* "--name value" or "--name=value". *at moves past it. */
static leat_err flag_split(int argc, char **argv, int *at, char out_name[64],
                           const char **out_value, struct leat_error *error)
{
    const char *word = argv[(*at)++];
    if (strcmp(word, "-h") == 0) word = "--help";
    if (strncmp(word, "--", 2) != 0)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "\"%.64s\" is not an option; leatd --help lists them", word);
    const char *equals = strchr(word, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    if (bytes > 63) bytes = 63;
    memcpy(out_name, word + 2, bytes);
    out_name[bytes] = '\0';
    bool single = strcmp(out_name, "help") == 0 || strcmp(out_name, "version") == 0;
    *out_value = equals != NULL ? equals + 1 : NULL;
    if (single) return LEAT_OK;
    if (option_find(out_name) == NULL && strcmp(out_name, "config") != 0)
        return unknown(true, out_name, error);
    if (*out_value == NULL) {
        if (*at >= argc)
            return leat_error_set(error, LEAT_E_CONFIG, "--%s needs a value", out_name);
        *out_value = argv[(*at)++];
    }
    return LEAT_OK;
}

enum {
    PING_MS = 25,
    SUSPECT_MS = 100
}; /* where none is given: as in coordinator/membership/detect.c */

/* SUBTLE: the last answer is a round old where nothing is wrong, and up to two where the leader ran late for less
 * than a round. With a shorter suspicion the leader would take a majority for silent in every round. Then no hanging
 * node is ever declared crashed, since the leader itself might be cut off. */
static leat_err detection_check(const struct leatd_config *config, struct leat_error *error)
{
    uint32_t ping_ms = config->ping_ms != 0 ? config->ping_ms : PING_MS;
    uint32_t suspect_ms = config->suspect_ms != 0 ? config->suspect_ms : SUSPECT_MS;
    if (suspect_ms >= 2 * ping_ms) return LEAT_OK;
    return leat_error_set(
        error, LEAT_E_CONFIG,
        "with ping-ms %u and suspect-ms %u a node that answers every question would be "
        "taken for silent between two of them: suspect-ms has to be at least %u, twice "
        "ping-ms (four times is better), or ping-ms %u at most",
        ping_ms, suspect_ms, 2 * ping_ms, suspect_ms / 2);
}

leat_err leatd_config_parse(int argc, char **argv, struct leatd_config *out_config,
                            struct leat_error *error)
{
    struct leatd_config config;
    leatd_config_default(&config);
    /* Twice: the file first, wherever on the line it stands, for flags win over it. */
    for (int pass = 0; pass < 2; pass++) {
        for (int at = 1; at < argc;) {
            char name[64];
            const char *value = NULL;
            leat_err rc = flag_split(argc, argv, &at, name, &value, error);
            if (rc != LEAT_OK) return rc;
            if (strcmp(name, "help") == 0) {
                config.help = true;
            } else if (strcmp(name, "version") == 0) {
                config.version = true;
            } else if (strcmp(name, "config") == 0) {
                if (pass == 0) rc = leatd_config_read(value, &config, error);
                snprintf(config.file, sizeof config.file, "%s", value);
            } else if (pass == 1) {
                struct leat_error cause;
                rc = option_set(option_find(name), value, &config, &cause);
                if (rc != LEAT_OK) leat_error_set(error, rc, "--%s", cause.text);
            }
            if (rc != LEAT_OK) return rc;
        }
    }
    if (!config.help && !config.version) {
        leat_err rc = detection_check(&config, error);
        if (rc != LEAT_OK) return rc;
    }
    *out_config = config;
    return LEAT_OK;
}
