# SPDX-License-Identifier: Apache-2.0
"""Load by both protocols at once on the same logs, and readers by Kafka's protocol while it goes on: every batch that
was answered is there, once. What the sanitizers look at: connections on one core, logs on another, mail between them.

KAFKA_LOAD and NATIVE_LOAD name the programs (tests/kafka/load.c, tests/broker/load.c)."""
import os
import re
import subprocess
import threading

from kafka_wire import batch_offsets, batches_fetch, Connection
from rig import Server, WAIT_S, check, equal, main, on_end, process_end
import tied

PARTITIONS, RECORDS, LARGE_RECORDS = 4, 20, 3500


class Reader(threading.Thread):
    """Reads a partition until all of it is there that was appended when the load was over."""

    def __init__(self, address, partition, over):
        super().__init__()
        self.conn = Connection(*address)
        self.partition, self.over, self.records, self.failure = partition, over, 0, None

    def run(self):
        try:
            offset = 0
            while True:
                over = self.over.is_set()
                batches, high = batches_fetch(self.conn, 'load', self.partition, offset)
                for first, behind in map(batch_offsets, batches):
                    equal(first, offset, 'the next offset')
                    self.records += behind - first
                    offset = behind
                if over and offset == high:
                    return
        except Exception as failure:
            self.failure = failure


def load(seconds, in_flight, per_batch):
    # The programs don't connect again: each core has room for what comes of them from other cores at once.
    server = Server('--kafka', '127.0.0.1:0', '--memory', '1G').start()
    port = int(server.node_log_wait(r'clients of Kafka: listening on \S+:(\d+)').group(1))
    server.leat('stream', 'create', 'load', '--streamlets', 2, '--logs', 2, '--durability', 'memory')
    over = threading.Event()
    readers = [Reader((server.host, port), p, over) for p in range(PARTITIONS)]
    for reader in readers:
        reader.start()
    flags = [str(seconds), str(in_flight), str(per_batch)]
    programs = [tied.start(command, stdout=subprocess.PIPE, text=True) for command in (
        [os.environ['KAFKA_LOAD'], server.host, str(port), 'load', str(PARTITIONS), '3', *flags],
        [os.environ['NATIVE_LOAD'], server.host, str(server.port), 'load', '2', *flags, str(PARTITIONS), '0'])]
    for program in programs:
        on_end(lambda program=program: process_end(program))
    said = [program.communicate(timeout=WAIT_S)[0] for program in programs]
    over.set()
    for reader in readers:
        reader.join(WAIT_S)
        check(not reader.is_alive(), 'a reader does not come to the end')
        if reader.failure:
            raise reader.failure
    equal([program.returncode for program in programs], [0, 0], f'ends of the programs, which said {said}\n{server.node_log_end()}')
    batches = [int(re.search(r', (\d+) batches\b(?!/s)', line).group(1)) for line in said]
    check(min(batches) > 0, said)
    equal(sum(reader.records for reader in readers), sum(batches) * per_batch, 'records read')
    equal(sum(log['end_offset'] for log in server.describe('load')['log_list']), sum(batches) * per_batch, 'records')
    server.stop()


def test_load_by_both_doors_is_all_there():
    load(2, 4, RECORDS)


def test_large_batches_by_both_doors_are_all_there():
    """Larger than what one read takes: they go to other cores in the buffer that they were read into."""
    load(1, 2, LARGE_RECORDS)


if __name__ == '__main__':
    main(at_once=1)  # each wants all processors
