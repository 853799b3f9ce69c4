# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits: "area: imperative summary", at most 72 characters. That it is imperative is for the eyes."""
import re
import subprocess

SUBJECT_MAX = 72
FORM = re.compile(r"[\w/.,+-][\w/.,+ -]*: \S.*[^.\s]")  # "tests/sim, tools: filter traces"


def complaints(message):
    """What is wrong with a message."""
    lines = [line for line in message.split("\n") if not line.startswith("#")]
    subject = lines[0] if lines else ""
    told = []
    if len(subject) > SUBJECT_MAX:
        told.append(f"the subject has {len(subject)} characters; {SUBJECT_MAX} at most")
    if not FORM.fullmatch(subject):
        told.append('the subject is not "area: imperative summary" without a full stop')
    if len(lines) > 1 and lines[1]:
        told.append("the line below the subject is not empty")
    return told


def git(*words):
    out = subprocess.run(["git", *words], capture_output=True, text=True)
    return out.stdout.strip() if out.returncode == 0 else None


def check():
    """Of the last commit, and of all that the upstream branch (else origin/main) does not have."""
    base = git("merge-base", "HEAD", "@{upstream}") or git("merge-base", "HEAD", "origin/main")
    commits = (git("rev-list", f"{base}..HEAD") if base else None) or git("rev-parse", "HEAD") or ""
    told = []
    for commit in commits.split():
        message = git("log", "-1", "--format=%B", commit)
        told += [f"commit {commit[:12]} ({message.splitlines()[0][:40]}): {words}" for words in complaints(message)]
    return told
