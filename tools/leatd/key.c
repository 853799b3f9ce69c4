/* SPDX-License-Identifier: Apache-2.0 */
/* The key that the nodes of a cluster prove to each other. */
#include "tools/leatd/config.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"

static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    if (address->sa_family == AF_INET) return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Is it reached from this machine only? */
static bool is_local(const char *address)
{
    struct leat_address_parts parts;
    char host[LEATD_NAME_BYTES];
    if (!leat_address_split(address, strlen(address), &parts)) return false;
    snprintf(host, sizeof host, "%.*s", (int)parts.host_bytes, parts.host);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) return false;
    bool local = found != NULL;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        local = local && is_loopback(at->ai_addr);
    freeaddrinfo(found);
    return local;
}

leat_err leatd_key_check(const struct leatd_config *config, struct leat_error *error)
{
    if (config->cluster_key[0] != '\0' || is_local(config->node_listen)) return LEAT_OK;
    return leat_error_set(
        error, LEAT_E_CONFIG,
        "other machines reach --node-listen %.64s, so nodes have to prove that they are of "
        "this cluster: name a file for its key by --cluster-key (made when it is missing; every "
        "node needs a copy)",
        config->node_listen);
}

leat_err leatd_key_load(const struct leatd_config *config, struct leatd_key *out_key,
                        struct leat_error *error)
{
    out_key->of_account = config->cluster_key[0] == '\0';
    if (!out_key->of_account) {
        snprintf(out_key->path, sizeof out_key->path, "%s", config->cluster_key);
    } else {
        char state[4096];
        if (leat_os_default_data_dir(state, error) != LEAT_OK)
            return leat_error_set(
                error, LEAT_E_CONFIG,
                "there is no place for this account's own cluster key, since neither "
                "XDG_STATE_HOME nor HOME is set: name a file by --cluster-key");
        snprintf(out_key->path, sizeof out_key->path, "%s.key", state);
    }
    return leat_os_key_file(out_key->path, out_key->of_account, out_key->bytes, &out_key->made,
                            error);
}
