"""A bilingual grammar that writes the generated part of the phrasebook corpus.

words/*.txt    the lexicon, one entry a line
lexicon.py     reads it into small records
english.py     English morphology; chinese.py: Chinese numbers and dates
phrases.py     subjects, noun phrases, and draws of words that go together
grammar.py     what a pattern is, and how its sentences are drawn
patterns/      the patterns themselves, grouped by subject
split.py       train, validation and the three test sets
build.py       the command that writes data/phrasebook/
"""
