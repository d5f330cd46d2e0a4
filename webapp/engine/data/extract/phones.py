"""Telephone numbers: from libphonenumber's patterns, heads all of whose tails are valid numbers.

A number is a head and a tail of at most four digits. Every head is written as the library writes its numbers, in three
ways: E.164, international and national; the tails are digits with the blanks or dashes that the way puts among them.
"""

from __future__ import annotations

import re._parser as parser
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import phonenumbers
import pyarrow as pa
from phonenumbers import PhoneMetadata, PhoneNumber, PhoneNumberFormat

WAYS = {
    "e164": PhoneNumberFormat.E164,
    "international": PhoneNumberFormat.INTERNATIONAL,
    "national": PhoneNumberFormat.NATIONAL,
}
TAIL_DIGITS = 4
HEADS_OF_COUNTRY = 100
HEADS_OF_LOCALE = 400
"""Heads of a country that a locale stands for."""
HEADS_OF_STATE = 100
"""Heads of one subdivision, in countries where area codes tell it."""

_DIGITS = "0123456789"
_GOLDEN = 2_654_435_769
"""2**32 over the golden ratio: its multiples spread evenly."""


def _by_state(listed: str) -> dict[str, tuple[str, ...]]:
    return {state: tuple(codes) for state, *codes in (part.split() for part in listed.split(";"))}


AREA_CODES = {
    "US": _by_state(
        "AL 205 251 256 334 659 938; AK 907; AZ 480 520 602 623 928; AR 479 501 870; CA 209 213 310 323 408 "
        "415 424 442 510 530 559 562 619 626 628 650 657 661 669 707 714 747 760 805 818 831 858 909 916 "
        "925 949 951; CO 303 719 720 970; CT 203 475 860 959; DE 302; DC 202; FL 239 305 321 352 386 407 "
        "561 727 754 772 786 813 850 863 904 941 954; GA 229 404 470 478 678 706 762 770 912; HI 808; ID "
        "208 986; IL 217 224 309 312 331 618 630 708 773 779 815 847 872; IN 219 260 317 463 574 765 812 "
        "930; IA 319 515 563 641 712; KS 316 620 785 913; KY 270 364 502 606 859; LA 225 318 337 504 985; "
        "ME 207; MD 240 301 410 443 667; MA 339 351 413 508 617 774 781 857 978; MI 231 248 269 313 517 586 "
        "616 734 810 906 947 989; MN 218 320 507 612 651 763 952; MS 228 601 662 769; MO 314 417 573 636 "
        "660 816; MT 406; NE 308 402 531; NV 702 725 775; NH 603; NJ 201 551 609 732 848 856 862 908 973; "
        "NM 505 575; NY 212 315 332 347 516 518 585 607 631 646 716 718 838 845 914 917 929 934; NC 252 336 "
        "704 743 828 910 919 980 984; ND 701; OH 216 220 234 330 380 419 440 513 567 614 740 937; OK 405 "
        "539 580 918; OR 458 503 541 971; PA 215 223 267 272 412 484 570 610 717 724 814 878; RI 401; SC "
        "803 843 854 864; SD 605; TN 423 615 629 731 865 901 931; TX 210 214 254 281 325 346 361 409 430 "
        "432 469 512 682 713 726 737 806 817 830 832 903 915 936 940 956 972 979; UT 385 435 801; VT 802; "
        "VA 276 434 540 571 703 757 804; WA 206 253 360 425 509 564; WV 304 681; WI 262 414 534 608 715 "
        "920; WY 307"
    ),
    "CA": _by_state(
        "AB 368 403 587 780 825; BC 236 250 604 672 778; MB 204 431; NB 506; NL 709; NS 902; NT 867; ON 226 "
        "249 289 343 365 416 437 519 548 613 647 705 807 905; PE 902; QC 418 438 450 514 579 581 819 873; "
        "SK 306 639; YT 867"
    ),
}
"""Geographic area codes by subdivision (North American Numbering Plan Administrator, in service in 2020)."""


@dataclass
class Phones:
    """Heads in each way of writing, and the pool of tails."""

    heads: dict[str, list[str]] = field(default_factory=lambda: {way: [] for way in WAYS})
    tail_start: dict[str, list[int]] = field(default_factory=lambda: {way: [] for way in WAYS})
    tail_count: list[int] = field(default_factory=list)
    tails: list[str] = field(default_factory=list)
    _shapes: dict[str, int] = field(default_factory=dict)

    def add(self, country: str, most: int, area_codes: tuple[str, ...] = ()) -> tuple[int, int]:
        """Adds at most ``most`` heads of a country's mobile numbers (where those tell apart), of certain area codes
        if any are named. Answers where they lie, as (start, count)."""
        start = len(self.tail_count)
        calling = phonenumbers.country_code_for_region(country)
        if calling:
            for digits, tail in _heads(country, most, area_codes):
                self._add_head(calling, digits, tail)
        return start, len(self.tail_count) - start

    def _add_head(self, calling: int, digits: str, tail: int) -> None:
        zeros = _number(calling, digits + "0" * tail)
        nines = _number(calling, digits + "9" * tail)
        written = []
        for way, form in WAYS.items():
            if way == "e164":
                written.append((way, f"+{calling}{digits}", "#" * tail))
                continue
            low, high = phonenumbers.format_number(zeros, form), phonenumbers.format_number(nines, form)
            cut = _tail_at(low, tail)
            if low[:cut] != high[:cut] or low[cut:].replace("0", "#") != high[cut:].replace("9", "#"):
                return  # the way of writing hangs on digits of the tail
            written.append((way, low[:cut], low[cut:].replace("0", "#")))
        for way, head, shape in written:
            self.heads[way].append(head)
            self.tail_start[way].append(self._shape(shape))
        self.tail_count.append(10**tail)

    def _shape(self, shape: str) -> int:
        start = self._shapes.get(shape)
        if start is None:
            start = self._shapes[shape] = len(self.tails)
            digits = shape.count("#")
            pattern = shape.replace("#", "%s")
            self.tails.extend(pattern % tuple(f"{n:0{digits}d}") for n in range(10**digits))
        return start

    def head_table(self) -> pa.Table:
        """(tail_count, and for each way its head and where its tails start)."""
        columns = {"tail_count": pa.array(self.tail_count, pa.int32())}
        for way in WAYS:
            columns[way] = pa.array(self.heads[way], pa.string())
            columns[f"{way}_tail"] = pa.array(self.tail_start[way], pa.int32())
        return pa.table(columns)

    def tail_table(self) -> pa.Table:
        """(text): tails in the order of their digits, shape by shape."""
        return pa.table({"text": pa.array(self.tails, pa.string())})


def _number(calling: int, national: str) -> PhoneNumber:
    number = PhoneNumber(country_code=calling, national_number=int(national))
    if national.startswith("0"):
        number.italian_leading_zero = True
        number.number_of_leading_zeros = len(national) - len(national.lstrip("0"))
    return number


def _tail_at(text: str, digits: int) -> int:
    """Where the last ``digits`` digits of a written number begin, the separator before them being the head's."""
    at = len(text)
    for _ in range(digits):
        at -= 1
        while not text[at].isdigit():
            at -= 1
    return at


def _heads(country: str, most: int, area_codes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """(national digits but the tail, digits of the tail): evenly chosen among all there are."""
    metadata = PhoneMetadata.metadata_for_region(country)
    kinds = (metadata.mobile, metadata.fixed_line)
    kind = next(kind for kind in kinds if kind is not None and kind.national_number_pattern)
    found = _expanded(parser.parse(kind.national_number_pattern))
    usual = _usual_length(found, len(kind.example_number))
    sequences = [_split(sets) for sets in found if len(sets) == usual]
    if area_codes:
        sequences = [narrowed for sets in sequences for narrowed in _within(sets, area_codes)]
    sequences = _usual_tail(sequences)
    sizes = [prod(map(len, head)) for head, _ in sequences]
    total = sum(sizes)
    for i in range(min(most, total)):
        index = _spread(i, min(most, total), total)
        for (head, tail), size in zip(sequences, sizes, strict=True):
            if index < size:
                yield _unranked(head, index), tail
                break
            index -= size


def _usual_length(sequences: list[tuple[str, ...]], example: int) -> int:
    """The length that most numbers have, of those that are at most a digit longer than the library's example: patterns
    of some countries allow for many digits that nobody is given."""
    numbers: dict[int, int] = {}
    for sets in sequences:
        numbers[len(sets)] = numbers.get(len(sets), 0) + prod(map(len, sets))
    return max((length for length in numbers if length <= example + 1), key=lambda length: numbers[length])


def _usual_tail(sequences: list[tuple[tuple[str, ...], int]]) -> list[tuple[tuple[str, ...], int]]:
    """Those whose tails are as long as most numbers' are: one range has tails of one length."""
    numbers = [0] * (TAIL_DIGITS + 1)
    for head, tail in sequences:
        numbers[tail] += prod(map(len, head)) * 10**tail
    usual = numbers.index(max(numbers))
    return [(head, tail) for head, tail in sequences if tail == usual]


def _spread(i: int, slots: int, total: int) -> int:
    """A number below ``total`` out of slot ``i``, not at its edge, so that heads do not end in noughts."""
    first, last = i * total // slots, (i + 1) * total // slots
    return first + ((last - first) * (i * _GOLDEN & 0xFFFFFFFF) >> 32)


def _split(sets: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    tail = 0
    while tail < min(TAIL_DIGITS, len(sets)) and sets[-1 - tail] == _DIGITS:
        tail += 1
    return sets[: len(sets) - tail], tail


def _within(
    sequence: tuple[tuple[str, ...], int], codes: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int]]:
    head, tail = sequence
    for code in codes:
        if all(digit in allowed for digit, allowed in zip(code, head, strict=False)):
            yield (*code, *head[len(code) :]), tail


def _unranked(sets: tuple[str, ...], index: int) -> str:
    made = []
    for allowed in reversed(sets):
        index, place = divmod(index, len(allowed))
        made.append(allowed[place])
    return "".join(reversed(made))


def _expanded(tree: object) -> list[tuple[str, ...]]:
    """Every sequence of digit sets that a pattern of digits matches."""
    made: list[tuple[str, ...]] = [()]
    for kind, argument in tree:
        alternatives = _alternatives(str(kind), argument)
        made = [before + after for before in made for after in alternatives]
    return made


def _alternatives(kind: str, argument: object) -> list[tuple[str, ...]]:
    match kind:
        case "LITERAL":
            return [(chr(argument),)]
        case "IN":
            return [("".join(_members(argument)),)]
        case "BRANCH":
            return [sequence for branch in argument[1] for sequence in _expanded(branch)]
        case "SUBPATTERN":
            return _expanded(argument[3])
        case "MAX_REPEAT":
            low, high, inner = argument
            once = _expanded(inner)
            made, repeated = [], [()]
            for count in range(int(high) + 1):
                if count >= low:
                    made.extend(repeated)
                repeated = [before + after for before in repeated for after in once]
            return made
    raise ValueError(f"{kind} in a pattern of telephone numbers")


def _members(argument: object) -> Iterator[str]:
    for kind, value in argument:
        match str(kind):
            case "LITERAL":
                yield chr(value)
            case "RANGE":
                yield "".join(chr(code) for code in range(value[0], value[1] + 1))
            case "CATEGORY":
                yield _DIGITS
