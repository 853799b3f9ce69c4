/* SPDX-License-Identifier: Apache-2.0 */
/* What leatd is told: flags, and a file of the same names. */
#ifndef LEAT_TOOLS_LEATD_CONFIG_H
#define LEAT_TOOLS_LEATD_CONFIG_H

#include "base/error.h"
#include "base/node_log.h"
#include "os/os.h"

/* How bytes of segments get to other nodes. */
enum leatd_replication {
    LEATD_REPLICATION_AUTO,
    LEATD_REPLICATION_VERBS,
    LEATD_REPLICATION_SHM,
    LEATD_REPLICATION_TCP,
    LEATD_REPLICATION_RPC,
};
enum {
    LEATD_NAME_BYTES = 128, /* of a name or an address, as nodes keep them, with its end */
    LEATD_VOTERS_MAX = 9,
};

struct leatd_config {
    char data[4096];
    char file[4096]; /* --config; "": none */
    char listen[LEATD_NAME_BYTES];
    char node[LEATD_NAME_BYTES]; /* --node, --name */
    char coordinators[2048];     /* as given: "a:7701,b:7701"; "": a server alone */
    char node_listen
        [LEATD_NAME_BYTES]; /* "": the host of `listen`, port 7701; only with coordinators */
    char advertise[LEATD_NAME_BYTES];       /* "": as `listen` */
    char kafka[LEATD_NAME_BYTES];           /* "": the default address, if it is free; "off" */
    char kafka_advertise[LEATD_NAME_BYTES]; /* "": as `kafka` */
    char cluster_key[4096];                 /* a file; "": the account's own key */
    char rack[64];
    char host[LEAT_OS_MACHINE_ID_BYTES]; /* "": the running kernel's id */
    enum leatd_replication replication;
    uint32_t ping_ms, suspect_ms, confirm_ms; /* 0: defaults */
    uint32_t cores;                           /* 0: all */
    uint64_t memory_bytes;                    /* 0: a quarter of the machine's */
    uint64_t hibernate_after_us;
    uint64_t offsets_retention_us;
    uint64_t scrub_bytes_per_second;
    uint32_t connections_per_address; /* 0: the default */
    enum leat_node_log_level log_level;
    bool auto_create;
    uint32_t num_partitions, default_replication_factor; /* of Kafka's topics; 0: 1 */
    bool help, version;
    /* What leatd_config_complete() finds out. */
    char *voters[LEATD_VOTERS_MAX]; /* the entries of `coordinators`, which is cut into them */
    uint32_t voter_count;           /* 0: a server alone */
    bool cores_by_default, kafka_by_default; /* not set by the operator */
};

/** Defaults, then the file that --config names, then the flags: the later wins. On refusal error
 * says which flag or which line of the file. */
leat_err leatd_config_parse(int argc, char **argv, struct leatd_config *out_config,
                            struct leat_error *error) LEAT_NODISCARD;
/** One file over what *config holds; for the file's name and for fuzzing. */
leat_err leatd_config_read(const char *path, struct leatd_config *config,
                           struct leat_error *error) LEAT_NODISCARD;
/** A whole file's text, as leatd_config_read() takes it. */
leat_err leatd_config_text(const char *text, struct leatd_config *config,
                           struct leat_error *error) LEAT_NODISCARD;
void leatd_config_default(struct leatd_config *config);
/** Sets missing options from this machine, and checks that options fit together: for the process that runs with
 * these. The configuration stays where it is from then on. */
leat_err leatd_config_complete(struct leatd_config *config,
                               struct leat_error *error) LEAT_NODISCARD;
/* The cluster key: nodes prove to each other that they have the key. */
struct leatd_key {
    char path[4096 + 8];
    uint8_t bytes[LEAT_OS_KEY_BYTES];
    bool of_account; /* no key was named */
    bool made;       /* just now */
};
/** A node that other machines can reach needs a named key. */
leat_err leatd_key_check(const struct leatd_config *config,
                         struct leat_error *error) LEAT_NODISCARD;
/** Read the key file, or make a missing file. Errors: LEAT_E_CONFIG names the file. */
leat_err leatd_key_load(const struct leatd_config *config, struct leatd_key *out_key,
                        struct leat_error *error) LEAT_NODISCARD;
/** Text of --help. */
extern const char leatd_help[];

#endif
