"""A small assembler for the filters of system calls (classic BPF, seccomp(2)).

A filter is a list of rules. Each names a system call, conditions on its arguments, and what is to happen; the first
that holds decides. Every rule is laid out by itself, and jumps only forward within it, so that none is ever too far
for the 8 bits that a jump has.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Instructions (linux/bpf_common.h).
LOAD: Final = 0x20  # LD | W | ABS
AND: Final = 0x54  # ALU | AND | K
EQUAL: Final = 0x15  # JMP | JEQ | K
GREATER: Final = 0x25  # JMP | JGT | K
RETURN: Final = 0x06  # RET | K

# struct seccomp_data: nr, arch, instruction_pointer, args[6].
NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16

_X32: Final = 0x40000000

# What is to happen (linux/seccomp.h).
ALLOW: Final = 0x7FFF0000
ASK: Final = 0x7FC00000
KILL: Final = 0x80000000
_FAIL: Final = 0x00050000


def fail(errno: int) -> int:
    """The call fails with an error number."""
    return _FAIL | errno


@dataclass(frozen=True)
class Where:
    """A condition on one argument (from 0): its lower half, cut by `mask`, is (`unless`: is not) one of `values`."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    unless: bool = False
    upper: bool = False
    """Of its upper half instead."""


@dataclass(frozen=True)
class Rule:
    """What happens to a system call whose conditions all hold."""

    number: int
    action: int
    conditions: tuple[Where, ...] = ()


Jump = int | None
"""How many instructions are left out; None: the rest of the rule."""
Instruction = tuple[int, Jump, Jump, int]
"""Code, jump if true, jump if false, operand."""


def assemble(architecture: int, highest: int, rules: Sequence[Rule], otherwise: int) -> bytes:
    """The filter's bytes: `struct sock_filter`s in the order of this machine.

    A call of a foreign architecture ends the process: its numbers mean something else; so do those of x32, which x86
    marks with bit 30. A call above `highest` is one that was invented after this was written: it is not there (ENOSYS).
    """
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (GREATER, 0, 1, _X32 - 1),
        (RETURN, 0, 0, KILL),
        (GREATER, 0, 1, highest),
        (RETURN, 0, 0, fail(errno.ENOSYS)),
    ]
    for rule in rules:
        code += _lay_out(rule)
    code.append((RETURN, 0, 0, otherwise))
    return b"".join(struct.pack("=HBBI", *one) for one in code)


def _lay_out(rule: Rule) -> list[Instruction]:
    """One rule. The accumulator holds the call's number before it and after it."""
    code: list[Instruction] = [(EQUAL, 0, None, rule.number)]
    for where in rule.conditions:
        code += [(LOAD, 0, 0, ARGUMENTS + 8 * where.argument + 4 * where.upper), (AND, 0, 0, where.mask)]
        if where.unless:
            code += [(EQUAL, None, 0, value) for value in where.values]
        else:
            after = len(where.values) - 1
            code += [(EQUAL, after - i, 0 if i < after else None, v) for i, v in enumerate(where.values)]
    code.append((RETURN, 0, 0, rule.action))
    if rule.conditions:
        code.append((LOAD, 0, 0, NUMBER))
    end = len(code) - bool(rule.conditions)
    return [(c, _to(end, i, t), _to(end, i, f), k) for i, (c, t, f, k) in enumerate(code)]


def _to(end: int, here: int, jump: Jump) -> int:
    """The jump, or that to the end of the rule."""
    return end - here - 1 if jump is None else jump
