"""Chinese forms that depend on their place: numbers, clock times and dates."""

from __future__ import annotations

DIGITS = "零一二三四五六七八九"


def number(n: int) -> str:
    """Spells 0 to 9,999: 12 -> 十二, 350 -> 三百五十, 1005 -> 一千零五."""
    if n < 10:
        return DIGITS[n]
    if n < 20:
        return "十" + (DIGITS[n - 10] if n > 10 else "")
    for size, name in ((1000, "千"), (100, "百"), (10, "十")):
        if n >= size:
            rest = n % size
            zero = "零" if rest and rest < size // 10 else ""
            # Inside a longer number, 十 keeps its 一: 二百一十.
            tail = "一" + number(rest) if 10 <= rest < 20 else number(rest)
            head = "两" if n // size == 2 and size == 1000 else DIGITS[n // size]
            return head + name + (zero + tail if rest else "")
    raise AssertionError(n)


def count(n: int) -> str:
    """A number before a measure word, where two is 两 and not 二: 两本书."""
    return "两" if n == 2 else number(n)


def year(n: int) -> str:
    """Reads a year digit by digit: 2015 -> 二零一五年."""
    return "".join(DIGITS[int(digit)] for digit in str(n)) + "年"


def date(month: int, day: int) -> str:
    """5, 3 -> 五月三号."""
    return f"{number(month)}月{number(day)}号"
