# SPDX-License-Identifier: Apache-2.0
"""Directories and memory pools of a test go with it, also of one that is killed and cleans nothing up.

Another process removes them then: it reads a pipe whose other end the test holds, and all that it starts. What it reads are
directories that were made; when nobody holds the other end any more, everybody has ended."""
import glob
import os
import shutil
import subprocess
import sys

_pipe = None


def pools(directory):
    """Pools, and memory that other nodes wrote into, whose first page names a data directory in there."""
    inside = os.path.realpath(directory).encode() + b'/'
    for path in glob.glob('/dev/shm/leat-pool-*') + glob.glob('/dev/shm/leat-rmem-*'):
        try:
            with open(path, 'rb') as pool:
                if inside in pool.read(8192):
                    yield path
        except (FileNotFoundError, PermissionError):
            pass  # somebody else's


def mounts(directory):
    inside = os.path.realpath(directory) + '/'
    with open('/proc/self/mountinfo') as file:
        return [point for point in (line.split()[4] for line in file) if point.startswith(inside)]


def remove(directory):
    for path in pools(directory):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    for point in mounts(directory):
        subprocess.run(['umount', '-l', point], capture_output=True)
    shutil.rmtree(directory, ignore_errors=True)


def held():
    """What every process that uses such a directory is to inherit."""
    return (_pipe,) if _pipe is not None else ()


def note(directory):
    global _pipe
    if _pipe is None:
        end, _pipe = os.pipe()
        # A session of its own: whoever kills a test that takes too long kills its group.
        subprocess.Popen([sys.executable, '-B', __file__], stdin=end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         cwd='/', start_new_session=True)
        os.close(end)
    os.write(_pipe, os.path.abspath(directory).encode() + b'\n')


if __name__ == '__main__':
    for line in sys.stdin.buffer.read().splitlines():
        remove(os.fsdecode(line))
