/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/codec/errors.h"

enum leat_kafka_error leat_kafka_error_of(leat_err code)
{
    switch (code) {
    case LEAT_E_OK:
    case LEAT_E_ALREADY_APPENDED: /* the batch is there: Kafka calls it a duplicate, and no error */
        return LEAT_KAFKA_NONE;
    case LEAT_E_STARTING:
        return LEAT_KAFKA_LEADER_NOT_AVAILABLE;
    case LEAT_E_AGAIN:
    case LEAT_E_TIMEOUT:
    case LEAT_E_CLOSED:
    case LEAT_E_CANCELLED:
        return LEAT_KAFKA_REQUEST_TIMED_OUT;
    case LEAT_E_NOT_OWNER:
    case LEAT_E_STALE_EPOCH:
        return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    case LEAT_E_NOT_LEADER:
        return LEAT_KAFKA_NOT_CONTROLLER;
    case LEAT_E_WRONG_GROUP_HOME:
        return LEAT_KAFKA_NOT_COORDINATOR;
    case LEAT_E_TOO_LARGE:
        return LEAT_KAFKA_MESSAGE_TOO_LARGE;
    case LEAT_E_CORRUPT:
        return LEAT_KAFKA_CORRUPT_MESSAGE;
    case LEAT_E_INVALID:
        return LEAT_KAFKA_INVALID_REQUEST;
    case LEAT_E_UNKNOWN_STREAM:
    case LEAT_E_UNKNOWN_LOG:
        return LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    case LEAT_E_STREAM_EXISTS:
    case LEAT_E_EXISTS:
        return LEAT_KAFKA_TOPIC_ALREADY_EXISTS;
    case LEAT_E_BAD_NAME:
        return LEAT_KAFKA_INVALID_TOPIC_EXCEPTION;
    case LEAT_E_OFFSET_OUT_OF_RANGE:
        return LEAT_KAFKA_OFFSET_OUT_OF_RANGE;
    case LEAT_E_SEQUENCE_GAP:
        return LEAT_KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER;
    case LEAT_E_PRODUCER_FENCED:
        return LEAT_KAFKA_INVALID_PRODUCER_EPOCH;
    case LEAT_E_UNKNOWN_PRODUCER:
        return LEAT_KAFKA_UNKNOWN_PRODUCER_ID;
    case LEAT_E_UNSUPPORTED:
        return LEAT_KAFKA_UNSUPPORTED_FOR_MESSAGE_FORMAT;
    case LEAT_E_TOO_MANY:
        return LEAT_KAFKA_POLICY_VIOLATION;
    case LEAT_E_UNKNOWN_MEMBER:
        return LEAT_KAFKA_UNKNOWN_MEMBER_ID;
    case LEAT_E_STALE_GENERATION:
        return LEAT_KAFKA_ILLEGAL_GENERATION;
    case LEAT_E_TOO_FEW_COPIES:
        return LEAT_KAFKA_NOT_ENOUGH_REPLICAS;
    case LEAT_E_NO_MEMORY:
    /* There is room again when other producers are forgotten: clients try again */
    case LEAT_E_TOO_MANY_PRODUCERS:
    case LEAT_E_DISK_FULL:
    case LEAT_E_DISK:
    case LEAT_E_DAMAGED:
    case LEAT_E_LOG_INCOMPLETE:
        return LEAT_KAFKA_KAFKA_STORAGE_ERROR;
    case LEAT_E_CONFIG:
        return LEAT_KAFKA_INVALID_CONFIG;
    default:
        return LEAT_KAFKA_UNKNOWN_SERVER_ERROR;
    }
}
