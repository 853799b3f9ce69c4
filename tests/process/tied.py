# SPDX-License-Identifier: Apache-2.0
"""Processes that do not outlive who starts them. A test that is killed cleans nothing up, and its servers would go on: they
hold ports, memory and a processor."""
import subprocess

import leftovers

# SUBTLE: the kernel goes by the thread that starts a process, not by its process: start nothing in a thread that ends first.
TIED = ('setpriv', '--pdeathsig', 'KILL', '--')


def tied(words):
    """The command that is killed once the calling thread is gone. It keeps its process id: setpriv becomes the program."""
    return [*TIED, *words]


def start(words, **more):
    return subprocess.Popen(tied(words), pass_fds=leftovers.held(), **more)


def run(words, **more):
    return subprocess.run(tied(words), pass_fds=leftovers.held(), **more)
