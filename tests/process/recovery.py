# SPDX-License-Identifier: Apache-2.0
"""Nodes that die or are stopped under load: another one serves their streamlets, and nothing that was
acknowledged is lost, doubled or out of order.

RECOVERY_TRIALS=n: kills of each test (3 by default). RECOVERY_MEASURE=n: also measure n kills with so many MB
stored as RECOVERY_STORED says (100): from the kill to the end of a producer that was started right after it.
"""
import os
import json
import random
import re
import signal
import subprocess
import threading
import time

from cluster import Cluster
from rig import STREAM_CREATE, WAIT_S, Raw, check, node_logs_print, equal, main, until

LOCATE, LOCATE_OFFSET, STARTING = 10, 3, 7
REFUSED = 2  # flag of an answer
TRIALS = int(os.environ.get('RECOVERY_TRIALS', '3'))


class Load:
    def __init__(self, cluster, stream, pace_s=0.002, prefix=''):
        self.count = 0
        self.prefix = prefix
        self.process = cluster.leat_start('produce', stream, '--batch-bytes', '2K', stdin=subprocess.PIPE)
        self.over = threading.Event()
        self.pace_s = pace_s
        self.thread = threading.Thread(target=self.feed, daemon=True)
        self.thread.start()

    def line(self, i):
        return f'{self.prefix}{i:08d}'

    def feed(self):
        try:
            while not self.over.wait(self.pace_s):
                new = range(self.count, self.count + 100)
                self.process.stdin.write(''.join(f'{self.line(i)}\n' for i in new).encode())
                self.process.stdin.flush()
                self.count += 100
        except BrokenPipeError:
            pass

    def end(self):
        self.over.set()
        self.thread.join(WAIT_S)
        out, error = self.process.communicate(timeout=WAIT_S)
        equal(self.process.returncode, 0, error.decode()[-2000:])
        return [self.line(i) for i in range(self.count)]


def others(cluster, victim):
    return [i for i in range(len(cluster.nodes)) if i != victim]


def test_a_killed_owner_is_followed_by_another_node():
    cluster = Cluster(nodes=4, voters=3).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 4, '--logs', 1, '--copies', 3,
                 '--durability', 'memory')
    lines = [f'{i:06d}' for i in range(20000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    victim = 3
    cluster.nodes[victim].kill()
    left = others(cluster, victim)
    equal(sorted(cluster.consume('s', which=left)), lines)
    cluster.produce('s', ['more'], which=left)
    equal(sorted(cluster.consume('s', which=left)), lines + ['more'])
    cluster.nodes[victim].start()
    equal(sorted(cluster.consume('s')), lines + ['more'], 'after it came back')


def kills(victims, durability, copies=3, nodes=4, how='kill'):
    cluster = Cluster(nodes=nodes, voters=3).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', copies,
                 '--durability', durability, '--segment-bytes', '1M')
    load = Load(cluster, 's')
    try:
        trials(cluster, load, victims, how)
        lines = load.end()
        equal(cluster.consume('s'), lines, f'{how} {victims}')
    except BaseException:
        load.over.set()
        node_logs_print(cluster.nodes)
        raise


def trials(cluster, load, victims, how):
    for i, victim in enumerate(victims):
        if i % 2 == 0:  # the one that hurts
            victim = until(lambda: owner(cluster), 'somebody serves')[0]
        begun = load.count
        until(lambda: load.count > begun + 3000, 'the producer goes on')
        if how == 'kill':
            cluster.nodes[victim].kill()
            until(lambda: load.count > begun + 20000, 'the producer goes on without it')
            cluster.nodes[victim].start()
        else:
            pid = cluster.nodes[victim].process.pid
            os.kill(pid, signal.SIGSTOP)
            until(lambda: load.count > begun + 20000, 'the producer goes on without it')
            os.kill(pid, signal.SIGCONT)


def test_kills_under_load_lose_and_double_nothing():
    dice = random.Random(int(os.environ.get('RECOVERY_SEED', '1')))
    kills([dice.randrange(4) for _ in range(TRIALS)], 'memory')


def test_kills_of_nodes_with_disk_streams():
    dice = random.Random(int(os.environ.get('RECOVERY_SEED', '2')))
    kills([dice.randrange(3) for _ in range(TRIALS)], 'disk', nodes=3)


def test_stopped_nodes_do_not_serve_what_others_took_over():
    dice = random.Random(int(os.environ.get('RECOVERY_SEED', '3')))
    kills([dice.randrange(4) for _ in range(TRIALS)], 'memory', how='stop')


def owner(cluster):
    """Which node serves partition 0: a list of one, or of none while nobody does."""
    text = cluster.leat('stream', 'describe', 's', '--json').stdout
    incarnation = json.loads(text)['log_list'][0]['owner']
    return [int(n['name'][1:]) for n in cluster.status(code=None)['nodes']
            if n['incarnation'] == incarnation and n['state'] == 'up']


def test_what_only_a_node_has_that_is_down_is_not_called_damaged():
    """Nor by LOCATE, which looks an offset up: whoever asks is told to try again, and not to begin behind it."""
    cluster = Cluster(nodes=4, voters=3).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 2, '--durability', 'disk',
                 '--segment-bytes', '64K')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    cluster.leat('streamlet', 'move', 's', 0, 'n3')
    lines, away = [], None

    def held(i):
        return {row['segment'] for row in cluster.nodes[i].segments(stream)}

    while away is None:
        check(len(lines) < 400000, 'one node has all copies')
        new = [f'{i:06d}' for i in range(len(lines), len(lines) + 5000)]
        cluster.produce('s', new, '--batch-bytes', '2K')
        lines += new
        ends = max(held(3)) - 1  # the last one may be a reservation
        away = next((i for i in range(3) if 0 in held(i) and not held(i) & {ends, ends + 1}), None)
    for i in (3, away):
        cluster.nodes[i].kill()
    left = [i for i in range(3) if i != away]
    serving = until(lambda: [i for i in left if 'reads in front of segment' in cluster.nodes[i].node_log()], 'the front is missed')[0]
    _, rows, _ = Raw(cluster.nodes[serving]).call(LOCATE, [[[stream, 0, 0, LOCATE_OFFSET, 0]]])
    equal(rows[0][0], STARTING, rows)
    for i in (3, away):
        cluster.nodes[i].start()
    equal(cluster.consume('s'), lines)


def measured_kill(cluster, i):
    victim = until(lambda: owner(cluster), 'somebody serves')[0]
    left = others(cluster, victim)
    begun = time.time()
    cluster.nodes[victim].process.kill()
    cluster.produce('s', [f'after {i}'], which=left)
    acked = time.time()
    cluster.nodes[victim].kill()
    steps = [f'{line}' for node in left for line in cluster.nodes[node].node_log().splitlines()
             if re.search(r'declared crashed|recovery [0-9a-f]+:|is served here', line)]
    cluster.nodes[victim].start()
    until(lambda: {n['state'] for n in cluster.status()['nodes']} == {'up'}, 'all are up')
    return (acked - begun) * 1000, steps[-4:]


def anon_bytes(node):
    return int(re.search(r'RssAnon:\s+(\d+) kB', node.proc('status')).group(1)) << 10


def test_segments_make_way_for_a_dead_nodes_logs_before_it_dies():
    # What a node has now is no reason to give anything up; what it has while another is away, is.
    cluster = Cluster().start()
    cluster.leat('bench', 'append', '--stream', 'busy', '--streamlets', 3, '--logs', 2, '--durability', 'memory',
                 '--producers', 3, '--records', 6_000_000, '--json', '-')
    held = [os.stat(node.pool).st_blocks * 512 for node in cluster.nodes]
    check(min(held) > 65 << 20, 'pools of more than a step', held)
    cluster.leat('stream', 'create', 'many', '--streamlets', 15000, '--logs', 2, '--durability', 'memory')
    for node in cluster.nodes:
        node.node_log_wait('memory for segments: 64 MiB of 128')
        until(lambda: os.stat(node.pool).st_blocks * 512 < 66 << 20, 'the second step goes back to the kernel')
    left = cluster.nodes[:2]
    before = [(anon_bytes(node), len(node.node_log())) for node in left]
    cluster.nodes[2].kill()
    for node, (had, said) in zip(left, before):
        until(lambda: anon_bytes(node) > had + (16 << 20), 'the logs of the dead node have come')
        check('wait for memory' not in node.node_log()[said:], 'logs waited', node.node_log_end())
        status = node.status()
        check(status['memory_used'] <= status['memory_budget'], status)


def made_at_once(cluster, count, streamlets):
    """Streams asked for through each node before an answer is read: how many were made, and the last refusal."""
    raws = [Raw(node) for node in cluster.nodes]
    for i in range(count):
        for n, raw in enumerate(raws):
            raw.send(STREAM_CREATE, [f's{n}-{i}', [streamlets, 1, 1, 1, 2, 0, 0, 0]])
    answers = [raw.answer() for raw in raws for _ in range(count)]
    refused = [control for flags, control, _ in answers if flags & REFUSED]
    return len(answers) - len(refused), refused


def test_streams_made_through_all_nodes_at_once_take_what_one_would_give():
    cluster = Cluster().start()
    made, refused = made_at_once(cluster, 30, 2048)
    check(5 <= made <= 16, f'{made} of 90 streams of 2,048 logs were made; one node alone makes 15', refused[-1])
    left = cluster.nodes[:2]
    before = [len(node.node_log()) for node in left]
    cluster.nodes[2].kill()
    for node, said in zip(left, before):
        until(lambda: 'have an owner again' in left[0].node_log() + left[1].node_log(), 'the logs have come')
        check('wait for memory' not in node.node_log()[said:], 'logs waited', node.node_log_end())


def test_empty_logs_without_memory_wait_at_a_start_too():
    cluster = Cluster().start()
    cluster.leat('stream', 'create', 'kept', '--streamlets', 1, '--logs', 1, '--copies', 3)
    cluster.produce('kept', ['one', 'two'])
    for i in range(10):
        cluster.leat('stream', 'create', f'many{i}', '--streamlets', 2048, '--logs', 1)
    for node in cluster.nodes:
        node.kill()
    for node in cluster.nodes:
        node.launch('--memory', '128M')
    for node in cluster.nodes:
        node.ready_wait()
    # One that comes late may own fewer by then: others have taken over what was its own.
    until(lambda: any('wait for memory' in node.node_log() for node in cluster.nodes), 'somebody names what waits')
    for node in cluster.nodes:
        check(anon_bytes(node) < (128 << 20) * 11 // 10 + (32 << 20), 'memory', anon_bytes(node))
    equal(cluster.consume('kept'), ['one', 'two'])
    for i in range(10):
        cluster.leat('stream', 'delete', f'many{i}')
    cluster.produce('kept', ['three'])
    equal(cluster.consume('kept'), ['one', 'two', 'three'])


def test_measure():
    count = int(os.environ.get('RECOVERY_MEASURE', '0'))
    stored = int(os.environ.get('RECOVERY_STORED', '100'))
    if count == 0:
        return
    cluster = Cluster(nodes=4, voters=3, memory='1G').start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 3,
                 '--durability', 'memory')
    line = 'x' * 999
    for _ in range(stored // 10):
        cluster.produce('s', [line] * 10_000, '--batch-bytes', '256K')
    times = []
    for i in range(count):
        ms, steps = measured_kill(cluster, i)
        times.append(ms)
        print(f'{ms:.0f} ms', *steps, sep='\n    ', flush=True)
    times.sort()
    print(f'{stored} MB stored, {count} kills: least {times[0]:.0f}, half {times[count // 2]:.0f}, '
          f'most {times[-1]:.0f} ms from the kill to the end of a new producer')


if __name__ == '__main__':
    main(at_once=3)  # as in netns.py
