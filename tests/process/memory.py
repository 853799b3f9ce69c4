"""--memory bounds the process: resident memory stays within 1.1 times the budget and 32 MiB, whatever 10,000 clients
do at once, and an honest producer goes on meanwhile."""
import os
import re
import struct
import subprocess
import sys
import threading
import time

from cluster import Cluster
from kafka_wire import Out
from rig import HELLO, LEAT, METADATA, PING, Server, check, frame, line_read, main, on_end, process_end, until
import tied

MIB = 1 << 20
CLUSTER_STATUS, SET_COMMIT, SET_FETCH = 18, 14, 15
PROCESSES = 4
# So long all of it goes on; a machine that is slow has fewer connections by then, never other bounds.
ATTACK_S = float(os.environ.get('LEAT_MEMORY_S', '20'))

# Each connection has one of the ways, by its number: some bytes, then others again and again, as many as its way sends
# at most. None reads what it is answered. Who is closed, or rings, comes again.
CROWD = r"""
import resource, select, selectors, socket, sys, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
count, until_s = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
ways = []
for line in open(sys.argv[3]):
    port, first, again, most, few, rings = line.split()
    ways.append((int(port), bytes.fromhex(first), bytes.fromhex(again), int(most), few == '1', rings == '1'))
many = [way for way in ways if not way[4]]
poll = selectors.EpollSelector()
opened = closed = 0

class Conn:
    def __init__(self, number):
        global opened
        self.number = number
        way = ways[number] if number < len(ways) else many[number % len(many)]
        port, self.left, self.again, self.most, _, self.rings = way
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        try:
            self.socket.connect(('127.0.0.1', port))
        except BlockingIOError:
            pass
        opened += 1
        poll.register(self.socket, selectors.EVENT_WRITE, self)
    def end(self):
        global closed
        closed += 1
        poll.unregister(self.socket)
        self.socket.close()
    def write(self):
        # False: it is closed, or rings.
        if not self.left:
            return False
        try:
            sent = self.socket.send(self.left[:65536])
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.left, self.most = self.left[sent:], self.most - sent
        if not self.left and self.most > 0:
            self.left = self.again
        if not self.left and not self.rings:
            poll._selector.modify(self.socket, select.EPOLLRDHUP)  # all is sent; its end alone is of interest
        return bool(self.left) or not self.rings

conns, waiting = set(), list(range(count))
while time.monotonic() < until_s:
    for _ in range(min(50, len(waiting))):
        conns.add(Conn(waiting.pop()))
    for key, events in poll.select(0.02):
        conn = key.data
        if not conn.write():
            conn.end()
            conns.discard(conn)
            waiting.insert(0, conn.number)
print('opened', opened, 'closed', closed, 'held', len(conns), flush=True)
sys.stdin.read()
"""


def kafka(key, version, out):
    head = struct.pack('>hhih', key, version, 7, 4) + b'evil'
    return struct.pack('>i', len(head + out.bytes)) + head + out.bytes


def ways(port, kafka_port, path):
    """What connections send. few: one of each process."""
    hello = frame(HELLO, [1, 1, 'crowd', -1])
    unknown = [f'n{i}-'.ljust(240, 'x') for i in range(512)]
    lines = []

    def way(port, first, again=b'', most=6000, few=False, rings=False):
        lines.append(f'{port} {first.hex()} {(again or first).hex()} {most} {int(few)} {int(rings)}')
    # A few send much.
    metadata = frame(METADATA, [unknown, False])
    way(port, hello + metadata, metadata, 64 * MIB, few=True)  # answers of 200 KiB
    topics = Out(False)
    asked = kafka(3, 1, topics.array([name[:200] for name in unknown], topics.run))
    way(kafka_port, asked, asked, 64 * MIB, few=True)
    commit = frame(SET_COMMIT, ['set', 'member', 1, [[1, 0, 0, 0, 1]] * 2000])
    way(port, hello + commit, commit, 64 * MIB, few=True)  # copies of bodies
    offsets = frame(SET_FETCH, ['set', [[1, 0, i] for i in range(2000)]])
    way(port, hello + offsets, offsets, 64 * MIB, few=True)
    way(port, hello + frame(PING, [], payload=bytes(2 * MIB))[:9000], most=0, few=True)  # half frames
    way(kafka_port, struct.pack('>i', 2 * MIB) + bytes(9000), most=0, few=True)
    wanted = frame(METADATA, [[f'made-{i}-{os.getpid()}' for i in range(1000)], True])
    way(port, hello + wanted, wanted, 64 * MIB, few=True)  # streams that are made by asking
    made = Out(False)
    asked = kafka(3, 4, made.array([f'kafka-made-{i}' for i in range(1000)], made.run).i('?', True))
    way(kafka_port, asked, asked, 64 * MIB, few=True)
    # Thousands send little that asks for much.
    everything = frame(METADATA, [[], False]) * 20
    way(port, hello + everything, everything)  # all streams
    topics = kafka(3, 1, Out(False).array(None, None)) * 20
    way(kafka_port, topics, topics)
    pings = frame(PING, []) * 20
    way(port, hello + pings, pings)
    status = frame(CLUSTER_STATUS, []) * 20
    way(port, hello + status, status)
    for group in range(4):
        join = Out(False).run(f'group-{group}').i('ii', 6000, 6000).run('').run('consumer')
        join.array(range(2), lambda n, join=join: join.run(f'range{n}').run(b'm' * 2000, True))
        way(kafka_port, kafka(11, 1, join), most=0)
    way(port, hello + frame(PING, []), most=0, rings=True)
    way(kafka_port, kafka(18, 0, Out(False)), most=0, rings=True)
    with open(path, 'w') as file:
        file.write('\n'.join(lines))


def resident_bytes(server):
    """All that is its own and resident, with the whole of its pool's and its replicas' files."""
    process = server.process
    found = dict(re.findall(r'(RssAnon|RssFile|RssShmem):\s+(\d+) kB', server.proc('status'))) if process else {}
    if not found:
        return 0  # it has ended: who asks next says so
    # Other nodes' memory for replicas is mapped as well, where this one writes into it by shared memory: that is theirs.
    own = os.path.basename(server.pool).replace('leat-pool-', 'leat-rmem-')
    with open(f'/proc/{process.pid}/maps') as maps:
        files = set(re.findall(r'(/\S*/leat-rmem-\S+)$', maps.read(), re.M))
    shared = 0
    for path in [server.pool, *(f for f in files if os.path.basename(f).startswith(own))]:
        try:
            shared += os.stat(path).st_blocks * 512
        except FileNotFoundError:
            pass
    return (int(found['RssAnon']) + int(found['RssFile'])) * 1024 + shared


class Watch:
    """The highest that each server had."""

    def __init__(self, servers):
        self.servers, self.over = servers, threading.Event()
        self.peaks = [resident_bytes(s) for s in servers]
        self.thread = threading.Thread(target=self.run, daemon=True)  # a test that fails ends all the same
        self.thread.start()

    def run(self):
        while not self.over.wait(0.1):  # a peak gives no event: it is looked for
            for i, server in enumerate(self.servers):
                self.peaks[i] = max(self.peaks[i], resident_bytes(server))

    def end(self):
        self.over.set()
        self.thread.join()


def crowd(path, connections):
    processes = []
    for _ in range(PROCESSES):
        process = tied.start([sys.executable, '-c', CROWD, str(connections // PROCESSES), str(ATTACK_S), path],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        on_end(lambda process=process: process_end(process))
        processes.append(process)
    return processes


def bound(memory_mib):
    return memory_mib * MIB * 11 // 10 + 32 * MIB


def honest_rounds(environment):
    """What an honest producer had acknowledged meanwhile."""
    done, until_s, number = [], time.monotonic() + ATTACK_S, 0
    while (left_s := until_s - time.monotonic()) > 0:
        number += 1
        try:
            said = tied.run([LEAT, 'produce', 'honest'], input=f'r{number}\n'.encode(), capture_output=True, timeout=left_s,
                            env=environment)
            if said.returncode == 0:
                done.append(f'r{number}')
        except subprocess.TimeoutExpired:
            pass
    return done


def kafka_port(server):
    return int(server.diary_wait(r'clients of Kafka: listening on (\S+):(\d+)').group(2))


def within(server, memory_mib, peak, what):
    check(peak <= bound(memory_mib), f'{what}: resident memory with --memory {memory_mib}M, at most '
          f'{bound(memory_mib) // MIB} MiB', f'{peak / MIB:.0f} MiB')


def alone(memory_mib, connections=10000):
    server = Server('--memory', f'{memory_mib}M', '--kafka', '127.0.0.1:0').start()
    server.produce('honest', ['first'])
    path = os.path.join(server.home, 'ways')
    ways(server.port, kafka_port(server), path)
    watch = Watch([server])
    processes = crowd(path, connections)
    done = honest_rounds(server.environment())
    said = [line_read(p.stdout) for p in processes]
    for process in processes:
        process_end(process)
    until(lambda: server.status()['connections'] < 100, 'connections are given back')
    server.produce('honest', ['last'])
    check(set(done + ['first', 'last']) <= set(server.values('honest')), 'what was acknowledged is read', done)
    watch.end()
    after = resident_bytes(server)
    print(f'  {memory_mib} MiB: peak {watch.peaks[0] / MIB:.0f} MiB, after {after / MIB:.0f} MiB, '
          f'{len(done)} honest rounds in {ATTACK_S:.0f} s, {" ".join(s.strip() for s in said)}')
    within(server, memory_mib, watch.peaks[0], 'during')
    within(server, memory_mib, after, 'after')
    check(len(done) >= ATTACK_S / 10, 'honest rounds', done)


def test_resident_memory_of_a_small_budget():
    alone(192)


def test_resident_memory_of_a_larger_budget():
    alone(1024)


def test_resident_memory_of_nodes_that_copy_for_each_other():
    cluster = Cluster(memory='256M', kafka='127.0.0.1:0').start()
    cluster.leat('stream', 'create', 'honest', '--copies', 3)
    cluster.produce('honest', ['first'])
    path = os.path.join(cluster.nodes[0].home, 'ways')
    ways(cluster.client_ports[0], kafka_port(cluster.nodes[0]), path)
    watch = Watch(cluster.nodes)
    processes = crowd(path, 10000)
    done = honest_rounds(dict(os.environ, LEAT_BROKERS=cluster.brokers()))
    said = [line_read(p.stdout) for p in processes]
    for process in processes:
        process_end(process)
    watch.end()
    print(f'  3 nodes of 256 MiB: peaks {[round(p / MIB) for p in watch.peaks]} MiB, {len(done)} honest rounds, '
          f'{" ".join(s.strip() for s in said)}')
    for node, peak in zip(cluster.nodes, watch.peaks):
        within(node, 256, peak, 'a node')
    cluster.produce('honest', ['last'])
    found = cluster.consume('honest')
    check(set(done + ['first', 'last']) <= set(found), 'what was acknowledged is read', done)


if __name__ == '__main__':
    main()
