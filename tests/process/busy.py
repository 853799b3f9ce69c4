# SPDX-License-Identifier: Apache-2.0
"""For trials.py: a machine that is busy with other things, and what a cluster says of itself while nothing goes on."""
import random
import signal
import threading
import time

from rig import WAIT_S


class StandStill:
    """Nodes are stopped and let go on at random, but for the one that a trial has stopped."""

    def __init__(self, trials, least_ms, most_ms, every_ms, seed):
        self.trials, self.range_ms, self.every_ms = trials, (least_ms, most_ms), every_ms
        self.dice = random.Random(seed)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def signal(self, processes, number):
        for process in processes:
            if process is not self.trials.stopped and process.poll() is None:
                process.send_signal(number)

    def run(self):
        while not self.over.wait(self.dice.expovariate(1000 / self.every_ms)):
            nodes = [n.process for n in self.trials.cluster.nodes if n.process]
            some = self.dice.sample(nodes, min(len(nodes), self.dice.choice((1, 1, 1, 2, 3))))
            self.signal(some, signal.SIGSTOP)
            time.sleep(self.dice.uniform(*self.range_ms) / 1000)  # how long they stand still is what is tried
            self.signal(some, signal.SIGCONT)

    def end(self):
        self.over.set()
        self.thread.join(WAIT_S)


class Teller:
    """Says once of each pause that is longer than that what the cluster says of itself."""

    def __init__(self, trials, seconds):
        self.trials, self.seconds, self.told = trials, seconds, set()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            time.sleep(0.5)  # between two looks at what gives no event
            for feed in list(self.trials.round.feeds) if self.trials.round else ():
                late = time.monotonic() - feed.acked_at
                key = (feed.stream, feed.streamlet, feed.acked_at)
                if feed.count > len(feed.offsets) and late > self.seconds and key not in self.told:
                    self.told.add(key)
                    self.tell(f'{late:.1f} s without an ack of {feed.stream}, streamlet {feed.streamlet}', feed.stream)

    def tell(self, what, stream):
        said = [what]
        for words in (('cluster', 'status'), ('stream', 'describe', stream, '--segments')):
            done = self.trials.cluster.leat(*words, code=None)
            said.append((done.stdout + done.stderr).decode(errors='replace'))
        said += [f'{node.flags[1]}:\n{whole_node_log(node)[-2000:]}' for node in self.trials.cluster.nodes]
        print('\n'.join(said), flush=True)


def whole_node_log(node):
    with open(node.node_log_path, 'rb') as node_log:
        return node_log.read().decode(errors='replace')
