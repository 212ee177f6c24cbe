"""Find lemmas and forms of French words."""

from __future__ import annotations

from client import main
from pyfrspell import FrSpell


def start():
    return FrSpell()


def call(made):
    found = [
        *(made.lemma(word) for word in ("mangeons", "chevaux", "belles", "finissait")),
        made.noun_derive("chat", "THD_PLF"),
        made.adje_derive("beau", "THD_F"),
        made.verb_derive("manger", "FST_PL", "INDI", "PRES"),
    ]
    return [{name: value for name, value in each.items() if name != "timeMs"} for each in found]


main(start, call)
