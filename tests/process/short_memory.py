# SPDX-License-Identifier: Apache-2.0
"""A running process gets little more memory, as on a machine where other programs have taken the rest.

A memory cgroup, where one can be made: the kernel kills the process that asks for more. A limit on the process's addresses
(RLIMIT_AS): the process is refused more. Both are taken back by end()."""
import errno
import os
import resource

from rig import equal, on_end, until

MIB = 1 << 20
CGROUPS = '/sys/fs/cgroup'
UNLIMITED = {'memory.max': 'max', 'memory.limit_in_bytes': '-1'}


def _write(path, text):
    with open(path, 'w') as file:
        file.write(text)


def _parents():
    """[(folder of this program's cgroup, name of the limit's file)], of both versions of cgroups."""
    found = []
    with open('/proc/self/cgroup') as rows:
        for row in rows:
            _, names, path = row.rstrip().split(':', 2)
            if names == '':
                found.append((CGROUPS + path, 'memory.max'))
            elif 'memory' in names.split(','):
                found.append((f'{CGROUPS}/memory{path}', 'memory.limit_in_bytes'))
                found.append((f'{CGROUPS}/memory', 'memory.limit_in_bytes'))
    return found


class Group:
    """A cgroup of its own for one process. What the process has already stays with its old cgroup, so the limit counts what is
    allocated from now on."""

    def __init__(self, folder, limit, parent):
        self.folder, self.limit, self.parent = folder, limit, parent

    def begin(self, pid, more):
        _write(f'{self.folder}/{self.limit}', str(more))
        _write(f'{self.folder}/cgroup.procs', str(pid))

    def end(self, pid):
        if not os.path.isdir(self.folder):
            return
        _write(f'{self.folder}/{self.limit}', UNLIMITED[self.limit])
        try:
            _write(f'{self.parent}/cgroup.procs', str(pid))
        except OSError:
            pass  # it is dead
        until(self.removed, 'a process that the kernel has killed leaves its cgroup')

    def removed(self):
        try:
            os.rmdir(self.folder)
        except OSError as error:
            equal(error.errno, errno.EBUSY, self.folder)
            return False
        return True


def _group_make():
    """None: no memory cgroup can be made here."""
    for parent, limit in _parents():
        folder = f'{parent}/leat-trial-{os.getpid()}'
        try:
            os.mkdir(folder)
        except OSError:
            continue
        if os.access(f'{folder}/{limit}', os.W_OK):
            return Group(folder, limit, parent)
        os.rmdir(folder)
    return None


class Addresses:
    """The limit on a process's addresses."""

    def begin(self, pid, more):
        with open(f'/proc/{pid}/statm') as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (now + more, hard))

    def end(self, pid):
        try:
            _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
            resource.prlimit(pid, resource.RLIMIT_AS, (hard, hard))
        except ProcessLookupError:
            pass  # it is dead


class ShortMemory:
    """Process `pid` gets at most `more` bytes from now on. killed: by the kernel, if that is possible here; else refused."""

    def __init__(self, pid, more, killed):
        self.pid = pid
        self.way = (_group_make() if killed else None) or Addresses()
        on_end(self.end)
        self.way.begin(pid, more)

    def end(self):
        self.way.end(self.pid)
