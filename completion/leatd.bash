# SPDX-License-Identifier: Apache-2.0
# bash completion for leatd(8)

_leatd()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    case $prev in
    --data) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
    --config | --cluster-key) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
    --log-level) COMPREPLY=($(compgen -W 'error warn info debug' -- "$cur")) && return ;;
    --replication) COMPREPLY=($(compgen -W 'auto verbs shm tcp' -- "$cur")) && return ;;
    --auto-create) COMPREPLY=($(compgen -W 'yes no' -- "$cur")) && return ;;
    --kafka) COMPREPLY=($(compgen -W 'off' -- "$cur")) && return ;;
    --*) return ;;
    esac
    COMPREPLY=($(compgen -W '--data --listen --cores --memory --config --log-level --auto-create --num-partitions
    --default-replication-factor --offsets-retention
        --hibernate-after --connections-per-address --scrub --kafka --kafka-advertise --node --name --coordinators --node-listen --cluster-key --advertise --rack --host --replication
        --ping-ms --suspect-ms --confirm-ms --help --version' -- "$cur"))
}
complete -F _leatd leatd
