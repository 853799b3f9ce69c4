# SPDX-License-Identifier: Apache-2.0
"""Do the copies of a segment on different nodes differ? Looked up in the data directories of nodes that have stopped."""
from rig import CLOSE, CLOSED, HIBERNATED, check, entries


def stopped_copies(nodes, stream):
    """{(streamlet, log, segment): [(node, its row, its bytes)]} of what is closed or hibernated."""
    found = {}
    for node in nodes:
        for row in node.segments(stream):
            if row['state'] in (CLOSED, HIBERNATED):
                key = row['streamlet'], row['log'], row['segment']
                found.setdefault(key, []).append((node, row, node.segment_bytes(row)[:row['prefix_id_bytes']]))
    return found


def without_close(blob):
    """What stands before the close entry."""
    return blob[:next((at for kind, at, *_ in entries(blob) if kind == CLOSE), len(blob))]


def right_and_left(places, copies):
    """(copies of what was decided, what an owner of the past had besides). Such an owner may have closed its own copy, or have had
    the entry on its way to some, when it was cut off: then what was decided is the beginning of what it closed, and does not count as
    a copy, since its length and CRC are others."""
    same = max(([place for place in places if place[2] == blob] for _, _, blob in places), key=len)
    begin = without_close(same[0][2])
    left = [place for place in places
            if place[1]['state'] == CLOSED and len(place[2]) > len(same[0][2]) and place[2].startswith(begin)]
    if len(same) < copies or not left:
        return places, []
    return [place for place in places if place not in left], left


def same_on_all_nodes(nodes, stream, copies):
    """Each closed segment lies on so many nodes, or more, and is the same everywhere, byte for byte. Of a log's end, which is hibernated
    while one node after the other stops, a shorter copy is the beginning of a longer one. An owner of the past may have written more
    than was decided: that has an older epoch and is not closed, or begins with what was decided; it goes when its node is told so.
    Returns how many segments and how many such leftovers there are."""
    segments = stopped_copies(nodes, stream)
    check(segments, 'no segments were found')
    leftovers = 0
    for key, places in segments.items():
        rows = '; '.join(f'{node.flags[1]} {row}' for node, row, _ in places)
        epoch = max(row['epoch'] for _, row, _ in places)
        old = [row for _, row, _ in places if row['epoch'] < epoch]
        check(all(row['state'] == HIBERNATED for row in old), f'segment {key} is closed under two epochs: {rows}')
        places, longer = right_and_left([place for place in places if place[1]['epoch'] == epoch], copies)
        leftovers += len(old) + len(longer)
        closed = any(row['state'] == CLOSED for _, row, _ in places)
        check(not closed or len(places) >= copies, f'segment {key} lies on {len(places)} nodes: {rows}')
        longest = max((blob for _, _, blob in places), key=len)
        for _, row, blob in places:
            check(len(blob) == row['prefix_id_bytes'] and longest.startswith(blob), f'segment {key}: bytes differ: {rows}')
            check(not closed or len(blob) == len(longest), f'segment {key}: lengths differ: {rows}')
    return len(segments), leftovers
