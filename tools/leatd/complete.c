/* SPDX-License-Identifier: Apache-2.0 */
/* Missing options of leatd are derived from this machine, and from other options. */
#include "tools/leatd/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"

enum {
    NODE_PORT = 7701,
    KAFKA_PORT = 9092,
    HOST_BYTES_MAX = 110, /* of an address, so that a port fits after it */
};

/* "a:7701,b:7701" is cut into its entries. */
static leat_err split_coordinators(struct leatd_config *config, struct leat_error *error)
{
    if (config->coordinators[0] == '\0') return LEAT_OK;
    char *rest = config->coordinators;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        word += strspn(word, " ");
        word[strcspn(word, " ")] = '\0';
        if (word[0] == '\0') continue;
        if (strrchr(word, ':') == NULL)
            return leat_error_set(error, LEAT_E_CONFIG,
                                  "--coordinators: \"%.64s\" is not HOST:PORT", word);
        if (config->voter_count == LEATD_VOTERS_MAX)
            return leat_error_set(error, LEAT_E_CONFIG,
                                  "--coordinators: at most %d of them vote; three are enough",
                                  LEATD_VOTERS_MAX);
        config->voters[config->voter_count++] = word;
    }
    if (config->voter_count == 0)
        return leat_error_set(error, LEAT_E_CONFIG, "--coordinators names nobody");
    return LEAT_OK;
}

static bool is_wildcard(const char *address)
{
    const char *const wildcards[] = {"0.0.0.0:", "[::]:", ":"};
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++)
        if (strncmp(address, wildcards[i], strlen(wildcards[i])) == 0) return true;
    return false;
}

/* Advertised addresses are checked before this node listens: each must lead here as it is. */
static leat_err told_check(const char *others, const char *address, const char *flag,
                           struct leat_error *error)
{
    if (is_wildcard(address))
        return leat_error_set(
            error, LEAT_E_CONFIG,
            "%s can't be told %s, which is every address of this host: name one by %s", others,
            address, flag);
    struct leat_address_parts parts;
    if (!leat_address_split(address, strlen(address), &parts) || parts.port == 0)
        return leat_error_set(
            error, LEAT_E_CONFIG,
            "%s can't be told %s, whose port the system is to choose: name one by %s", others,
            address, flag);
    return LEAT_OK;
}

/* The host of an address, with another port. */
static void port_change(const char *address, int port, char out[LEATD_NAME_BYTES])
{
    const char *colon = strrchr(address, ':');
    int host = colon != NULL ? (int)(colon - address) : (int)strlen(address);
    snprintf(out, LEATD_NAME_BYTES, "%.*s:%d", host > HOST_BYTES_MAX ? HOST_BYTES_MAX : host,
             address, port);
}

static leat_err complete_machine(struct leatd_config *config, struct leat_error *error)
{
    if (config->data[0] == '\0') {
        leat_err rc = leat_os_default_data_dir(config->data, error);
        if (rc != LEAT_OK) return rc;
    }
    config->cores_by_default = config->cores == 0;
    if (config->cores_by_default) config->cores = leat_os_cores();
    if (config->cores > LEAT_CORES_MAX) config->cores = LEAT_CORES_MAX;
    if (config->memory_bytes == 0) config->memory_bytes = leat_os_memory_bytes() / 4;
    if (config->node[0] == '\0' && gethostname(config->node, sizeof config->node - 1) != 0)
        memcpy(config->node, "leat", sizeof "leat");
    return LEAT_OK;
}

/* What only a node of a cluster has a use for was meant for one. */
static leat_err check_alone(const struct leatd_config *config, struct leat_error *error)
{
    const char *flag = config->node_listen[0] != '\0'   ? "--node-listen"
                       : config->cluster_key[0] != '\0' ? "--cluster-key"
                       : config->rack[0] != '\0'        ? "--rack"
                       : config->host[0] != '\0'        ? "--host"
                                                        : NULL;
    if (flag != NULL)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "%s is for a node of a cluster: say --coordinators as well", flag);
    return config->advertise[0] != '\0'
               ? told_check("clients", config->advertise, "--advertise", error)
               : LEAT_OK;
}

static leat_err complete_cluster(struct leatd_config *config, struct leat_error *error)
{
    leat_err rc = split_coordinators(config, error);
    if (rc != LEAT_OK) return rc;
    if (config->voter_count == 0) return check_alone(config, error);
    if (config->host[0] == '\0') leat_os_machine_id(config->host);
    if (config->advertise[0] == '\0')
        memcpy(config->advertise, config->listen, sizeof config->advertise);
    if (config->node_listen[0] == '\0') port_change(config->listen, NODE_PORT, config->node_listen);
    rc = told_check("other nodes", config->node_listen, "--node-listen", error);
    if (rc == LEAT_OK) rc = leatd_key_check(config, error);
    return rc != LEAT_OK ? rc : told_check("clients", config->advertise, "--advertise", error);
}

/* By default: the port that clients of Kafka try, on the host of --listen. */
static leat_err complete_kafka(struct leatd_config *config, struct leat_error *error)
{
    const char *told = config->kafka_advertise;
    config->kafka_by_default = config->kafka[0] == '\0';
    if (told[0] != '\0') {
        leat_err rc = told_check("clients of Kafka", told, "--kafka-advertise", error);
        if (rc != LEAT_OK) return rc;
    }
    if (!config->kafka_by_default && told[0] == '\0' && is_wildcard(config->kafka))
        return leat_error_set(error, LEAT_E_CONFIG,
                              "clients of Kafka can't be told %s: name one address by "
                              "--kafka-advertise",
                              config->kafka);
    if (!config->kafka_by_default) return LEAT_OK;
    bool host = strrchr(config->listen, ':') != NULL && !is_wildcard(config->listen);
    port_change(host ? config->listen : "127.0.0.1", KAFKA_PORT, config->kafka);
    return LEAT_OK;
}

leat_err leatd_config_complete(struct leatd_config *config, struct leat_error *error)
{
    leat_err rc = complete_machine(config, error);
    if (rc == LEAT_OK) rc = complete_cluster(config, error);
    if (rc == LEAT_OK) rc = complete_kafka(config, error);
    return rc;
}
