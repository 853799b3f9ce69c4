# SPDX-License-Identifier: Apache-2.0
"""An owner that is stopped under load, is taken for dead, and goes on: a zombie with one-sided writes under way.

  zombies.py TRIALS [SECONDS]   SECONDS: no trial begins later. LEAT_REPLICATION: the transport (verbs)

In each trial the node that serves the log gets appends over connections of their own and is stopped in the middle (SIGSTOP). The others
declare it crashed, fence it and take the log over. More appends are put into its sockets, and it is let go on (SIGCONT): in turn when
another serves already, and as soon as it is declared crashed, while fencing and recovery are under way. So its first acts are to take in
what waits, append it to its log and write that one-sidedly to its backups, before it hears what has become of it.

Checked: nothing that it was sent after it was declared crashed is ever acknowledged by it where another serves already; whatever it did
acknowledge lies at the offset that it named, once; nothing of a second producer, which goes on all the time by way of all nodes, is
lost, doubled or out of order; every node serves the same records; and when all have stopped every segment has the same bytes on all
nodes that hold it.
"""
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

# Only variables of the name LEAT_... come into a guest.
BUILD = os.environ['LEAT_BUILD']
os.environ['LEATD'], os.environ['LEAT'] = f'{BUILD}/tools/leatd', f'{BUILD}/tools/leat'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'process'))

from cluster import Cluster  # noqa: E402
from copies import same_on_all_nodes  # noqa: E402
from rawbatch import BatchMaker  # noqa: E402
import rig  # noqa: E402
from rig import METADATA, Raw, Server, check, cluster_key, node_logs_print, equal, frame, unpack, until  # noqa: E402
from recovery import Load  # noqa: E402

REPLICATION = os.environ.get('LEAT_REPLICATION', 'verbs')
APPEND, LINES, IN_FLIGHT, BEFORE, LATE = 8, 3, 4, 20, 8
TEXT_BYTES, FILLER = 16, 6000
# An emulated processor that others slow down as well pauses for long, and has no time for a fourth node.
NODES, PING_MS, SUSPECT_MS, CONFIRM_MS = (3, '500', '3000', '1500') if REPLICATION == 'verbs' else (4, '25', '300', '150')
MAKER = BatchMaker(FILLER, TEXT_BYTES)


def address():
    if REPLICATION != 'verbs':
        return '127.0.0.1'
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(('10.0.2.250', 9))
        return s.getsockname()[0]


class Zombies(Cluster):
    def __init__(self):
        self.host = address()
        super().__init__(nodes=NODES, voters=3, replication=REPLICATION, **{
            'ping-ms': PING_MS, 'suspect-ms': SUSPECT_MS, 'confirm-ms': CONFIRM_MS})

    def node(self, i, **other):
        self.voters = ','.join(f'{self.host}:{p}' for p in self.node_ports[:3])
        flags = {'node': f'n{i}', 'listen': f'{self.host}:{self.client_ports[i]}',
                 'node-listen': f'{self.host}:{self.node_ports[i]}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'cores': '1', 'memory': '512M' if NODES > 3 else '256M', 'kafka': 'off', **other}
        return Server(*[w for k, v in flags.items() for w in ('--' + k, v)], *self.flags)

    def brokers(self, *which):
        return ','.join(f'{self.host}:{self.client_ports[i]}' for i in which or range(NODES))

    def metadata(self, which):
        for i in which:
            try:
                raw = Raw(self.nodes[i])
                try:
                    return raw.call(METADATA, [['s'], False])[1]
                finally:
                    raw.socket.close()
            except (OSError, EOFError):
                pass  # it is not there now

    def log(self, which):
        """Who owns the one log and under which epoch, as one of these nodes knows; None: nobody that is up."""
        answer = self.metadata(which)
        if not answer or not answer[2] or answer[2][0][0] != 0:
            return None
        names = {incarnation: name.decode() for incarnation, name, where, *_ in answer[1] if where}
        _, _, owner, epoch, *_ = answer[2][0][4][0]
        return Owner(int(names[owner][1:]), epoch) if owner in names else None

    def up(self, which):
        """All of its nodes are, as one of these knows."""
        done = self.leat('cluster', 'status', '--json', which=which, code=None)
        return done.stdout and {n['state'] for n in json.loads(done.stdout)['nodes']} == {'up'}

    def said(self, pattern, but):
        return [m for i, node in enumerate(self.nodes) if i != but for m in re.findall(pattern, node.node_log())]


class Owner:
    def __init__(self, node, epoch):
        self.node, self.epoch = node, epoch


class Line:
    """One connection to an owner; batches of one record each, so many of them unanswered at a time."""

    serial = 0

    def __init__(self, server, log, stream_id):
        self.where = [stream_id, 0, 0, log.epoch, 1]
        Line.serial += 1
        self.name = f'{Line.serial:06d}'
        self.sent, self.acked, self.refused = [], {}, 0
        self.paused = threading.Event()
        self.slots = threading.Semaphore(IN_FLIGHT)
        self.socket = socket.create_connection((server.host, server.port), timeout=rig.WAIT_S)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.feed, self.hear)]
        self.socket.sendall(frame(rig.HELLO, [1, 1, 'zombie', -1], 0))
        for thread in self.threads:
            thread.start()

    def send(self):
        text = f'{self.name}.{len(self.sent):09d}'
        self.sent.append(text)
        self.socket.sendall(frame(APPEND, self.where, len(self.sent), MAKER.batch(text)))

    def feed(self):
        try:
            while not self.paused.is_set():
                if self.slots.acquire(timeout=0.05):
                    self.send()
        except OSError:
            pass

    def read(self, count):
        blob = b''
        while len(blob) < count:
            piece = self.socket.recv(count - len(blob))
            if not piece:
                raise EOFError
            blob += piece
        return blob

    def hear(self):
        """Answers, until the server closes the connection."""
        try:
            while True:
                length, _, _, _, request, control = struct.unpack_from('<IHBBII', self.read(24))
                rest = self.read(length - 20)
                if request == 0:
                    continue  # hello
                answer = unpack(rest[:control])[0]
                if isinstance(answer[0], list) and answer[0][0] == 0:
                    self.acked[self.sent[request - 1]] = answer[0][1]
                else:
                    self.refused += 1
                self.slots.release()
        except (EOFError, OSError):
            pass

    def over(self):
        """The server has refused something, or ended the connection."""
        return self.refused > 0 or not self.threads[1].is_alive()

    def pause(self):
        self.paused.set()
        self.threads[0].join(rig.WAIT_S)

    def late(self):
        """More, although nobody answers: as much as the sockets take."""
        first = len(self.sent)
        for _ in range(LATE):
            self.send()
        return self.sent[first:]

    def end(self):
        self.threads[1].join(rig.WAIT_S)
        check(not self.threads[1].is_alive(), 'a connection is neither answered nor closed')
        self.socket.close()


class Count:
    trials = served = acked = served_acks = late_acks = late_sent = broken = refused = 0


def probe(cluster, log, stream_id, acked):
    """The new owner acknowledges something."""
    try:
        line = Line(cluster.nodes[log.node], log, stream_id)
    except OSError:
        return False  # gone already
    until(lambda: line.acked or line.over(), 'the new owner answers')
    line.pause()
    line.socket.shutdown(socket.SHUT_RDWR)
    line.end()
    acked.update(line.acked)
    return bool(line.acked)


def crashes(cluster, victim):
    """So often has somebody declared it crashed."""
    return len(cluster.said(rf'node n{victim} \(incarnation \d+\) is declared crashed', victim))


def trial(cluster, number, log, stream_id, acked, count):
    """Gives the owner that follows."""
    victim = log.node
    left = [i for i in range(NODES) if i != victim]
    server = cluster.nodes[victim]
    before = crashes(cluster, victim)
    failures = server.node_log().count('replication: node')
    try:
        lines = [Line(server, log, stream_id) for _ in range(LINES)]
    except OSError:  # it was slow, and lost the log before anybody stopped it
        return until(lambda: cluster.log(range(NODES)), 'somebody owns the log')
    until(lambda: sum(len(x.acked) for x in lines) >= BEFORE or any(x.over() for x in lines), f'n{victim} acknowledges appends')
    os.kill(server.process.pid, signal.SIGSTOP)
    for line in lines:
        line.pause()
    until(lambda: crashes(cluster, victim) > before, f'n{victim} is declared crashed')
    new = None
    served = number % 2 == 0

    def follower():
        nonlocal new
        new = cluster.log(left)
        return new and new.epoch > log.epoch and probe(cluster, new, stream_id, acked)
    if served:
        until(follower, 'another serves')
    late = [text for line in lines if not line.over() for text in line.late()]
    heard = sum(len(x.acked) for x in lines)
    os.kill(server.process.pid, signal.SIGCONT)
    for line in lines:
        line.end()
        acked.update(line.acked)
        count.refused += line.refused
    after = sum(len(x.acked) for x in lines)
    wrong = [text for text in late if served and text in acked]
    check(not wrong, f'trial {number}: a fenced owner has acknowledged {wrong}')
    if not served:
        until(follower, 'another serves')
    if after >= BEFORE and late:
        count.trials += 1
        count.served += served
        count.acked += after
        count.late_acks += after - heard
        count.served_acks += (after - heard) * served
        count.late_sent += len(late)
        count.broken += server.node_log().count('replication: node') > failures
    until(lambda: cluster.up(left), f'n{victim} is back')
    return new


def offsets(cluster, which=()):
    lines = cluster.consume('s', '--format', '%o %v', which=which)
    return [(int(o), v) for o, v in (line.split(' ', 1) for line in lines)]


def everything(cluster, load_lines, acked):
    found = offsets(cluster)
    equal([o for o, _ in found], list(range(len(found))), 'offsets are dense')
    ours = [v for _, v in found if v.startswith('load')]
    equal(ours, load_lines, 'records of the producer that went on')
    raw = {}
    for o, v in found:
        if not v.startswith('load'):
            text = v[-TEXT_BYTES:]
            check(re.fullmatch(rf'z{{{FILLER}}}\d{{6}}\.\d{{9}}', v), f'nobody sent {v[:99]}')
            check(text not in raw, f'{text} is there twice')
            raw[text] = o
    for text, offset in acked.items():
        equal(raw.get(text), offset, f'where {text} is, which was acknowledged')
    for i in range(NODES):
        check(offsets(cluster, [i]) == found, f'n{i} tells something else')
    return len(found)


def describe(cluster):
    done = cluster.leat('stream', 'describe', 's', '--json', code=None)
    told = json.loads(done.stdout) if done.returncode == 0 else None
    return told if told and told['log_list'][0]['state'] == 'ok' and told['log_list'][0]['node'] else None


def run(trials, seconds):
    cluster = Zombies().start()
    until(lambda: cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 3, '--durability', 'memory',
                               '--segment-bytes', '256K', code=None).returncode in (0, 1), 'the stream is made')
    described = until(lambda: describe(cluster), 'the stream is served')
    log = described['log_list'][0]
    log = Owner(int(log['node'][1:]), log['epoch'])
    load = Load(cluster, 's', pace_s=0.3, prefix='load')
    acked, count = {}, Count()
    deadline = time.monotonic() + seconds
    try:
        while count.trials < trials and time.monotonic() < deadline:
            log = trial(cluster, count.trials, log, described['id'], acked, count)
            print(f'trial {count.trials}: n{log.node} serves under epoch {log.epoch}', flush=True)
        lines = load.end()
        records = everything(cluster, lines, acked)
        until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all copies are in place')
        for node in cluster.nodes:
            node.stop()
        segments, leftovers = same_on_all_nodes(cluster.nodes, described['id'], 3)
    except BaseException:
        load.over.set()
        node_logs_print(cluster.nodes)
        raise
    print(f'{count.trials} zombies over {REPLICATION}, {count.served} of them let go on when another served: {count.acked} of their appends acknowledged, of which {count.late_acks} after they '
          f'went on ({count.served_acks} where another served: written everywhere before they were stopped); {count.late_sent} sent after they were declared crashed; {count.refused} refused; {count.broken} zombies saw their '
          f'writes fail; {records} records, {segments} segments the same on all nodes, {leftovers} of unacknowledged ends not dropped yet')
    check(count.trials == trials, f'only {count.trials} trials in {seconds:.0f} s')


def main():
    try:
        run(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e9)
    finally:
        rig._clean()
    print(f'ok zombies ({"Soft-RoCE" if REPLICATION == "verbs" else REPLICATION})')


if __name__ == '__main__':
    main()
