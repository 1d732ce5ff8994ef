"""The patterns. Importing this package registers them all; a sentence belongs to the first."""

from . import (  # noqa: F401
    asking,
    aspect,
    being,
    clauses,
    comparing,
    describing,
    habits,
    handling,
    held_out,
    linking,
    modals,
    places,
    referring,
    sequence,
    times,
    wanting,
    yes_no,
)
