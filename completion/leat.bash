# SPDX-License-Identifier: Apache-2.0
# bash completion for leat(1)

_leat_streams()
{
    # Names from the server, when one answers within a second.
    timeout 1 leat stream list --json 2>/dev/null | grep -o '"name":"[^"]*"' | cut -d'"' -f4
}

_leat_nodes()
{
    timeout 1 leat cluster status --json 2>/dev/null | grep -o '"nodes":\[.*' | grep -o '"name":"[^"]*"' | cut -d'"' -f4
}

_leat()
{
    local cur prev noun verb i words=()
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --until-end | --json | --watch | --segments | --acks | --quiet | --append-time | --accept-loss | --fresh | --verify | \
            --replicated | --keep | --help | --version) ;;
        -[eqh] | --*=*) ;;
        --* | -?) ((i++)) ;; # and its value
        -*) ;;
        *) words+=("${COMP_WORDS[i]}") ;;
        esac
    done
    noun=${words[0]} verb=${words[1]}

    case $prev in
    --durability) COMPREPLY=($(compgen -W 'memory disk' -- "$cur")) && return ;;
    --validate) COMPREPLY=($(compgen -W 'full crc' -- "$cur")) && return ;;
    --compression | -z) COMPREPLY=($(compgen -W 'none lz4 zstd' -- "$cur")) && return ;;
    --replication)
        local kinds='shm verbs tcp rpc'
        [[ $verb == recovery ]] && kinds="auto $kinds"
        COMPREPLY=($(compgen -W "$kinds" -- "$cur")) && return
        ;;
    --how) COMPREPLY=($(compgen -W 'kill leader stop' -- "$cur")) && return ;;
    --before) COMPREPLY=($(compgen -W 'end' -- "$cur")) && return ;;
    --dir) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
    --leatd) COMPREPLY=($(compgen -c -- "$cur")) && return ;;
    --mode) COMPREPLY=($(compgen -W 'ordered parallel' -- "$cur")) && return ;;
    --from | -o) COMPREPLY=($(compgen -W 'earliest latest' -- "$cur")) && return ;;
    --stream) COMPREPLY=($(compgen -W "$(_leat_streams)" -- "$cur")) && return ;;
    --json)
        if [[ $noun == bench ]]; then
            COMPREPLY=($(compgen -f -- "$cur"))
            return
        fi
        ;;
    esac

    local options='--brokers --help'
    case $noun:$verb in
    :) COMPREPLY=($(compgen -W 'stream streamlet produce consume log status cluster node bench --brokers --help --version' -- "$cur")) && return ;;
    stream:) COMPREPLY=($(compgen -W "create list describe delete trim rebalance $options" -- "$cur")) && return ;;
    stream:create) options+=' --streamlets --logs --copies --min-copies --durability --retention-time --retention-bytes --segment-bytes --max-batch-bytes --append-time --validate --json' ;;
    stream:trim) options+=' --streamlet --log --before' ;;
    stream:list | status:*) options+=' --json' ;;
    stream:describe) options+=' --json --segments' ;;
    streamlet:) COMPREPLY=($(compgen -W "move $options" -- "$cur")) && return ;;
    produce:*) options+=' --key-separator --batch-bytes --linger --compression --streamlet --timeout --acks --quiet' ;;
    consume:*) options+=' --from --until-end --max-records --streamlet --log --group --mode --format' ;;
    log:) COMPREPLY=($(compgen -W "recover $options" -- "$cur")) && return ;;
    log:recover) options+=' --streamlet --log --accept-loss' ;;
    cluster:) COMPREPLY=($(compgen -W "status $options" -- "$cur")) && return ;;
    cluster:status) options+=' --json --watch' ;;
    node:) COMPREPLY=($(compgen -W "drain undrain add-voter replace $options" -- "$cur")) && return ;;
    bench:) COMPREPLY=($(compgen -W "append pull recovery $options" -- "$cur")) && return ;;
    bench:append) options+=' --producers --record-bytes --batch-records --seconds --records --rate --in-flight --threads --linger --compression --stream --streamlets --logs --durability --copies --replication --fresh --json' ;;
    bench:recovery) options=' --stored --copies --nodes --trials --how --replicated --durability --replication --memory --dir --keep --leatd --json --help' ;;
    bench:pull) options+=' --consumers --stream --records --seconds --fetch-bytes --verify --json' ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
        return
    fi
    case $noun:$verb in
    streamlet:move)
        case ${#words[@]} in
        2) COMPREPLY=($(compgen -W "$(_leat_streams)" -- "$cur")) ;;
        4) COMPREPLY=($(compgen -W "$(_leat_nodes)" -- "$cur")) ;;
        esac
        ;;
    node:*) COMPREPLY=($(compgen -W "$(_leat_nodes)" -- "$cur")) ;;
    stream:describe | stream:delete | stream:trim | stream:rebalance | log:recover) COMPREPLY=($(compgen -W "$(_leat_streams)" -- "$cur")) ;;
    produce:) COMPREPLY=($(compgen -W "$(_leat_streams)" -- "$cur")) ;;
    produce:*) COMPREPLY=($(compgen -f -- "$cur")) ;;
    consume:) COMPREPLY=($(compgen -W "$(_leat_streams)" -- "$cur")) ;;
    esac
}
complete -F _leat leat
