"""Settings put into a file that belongs to another program, with everything else in it as it was, comments too.

    file's text, lines to add ── edited ──▶ text      by the file's language: one module for each
                                       └──▶ `Uneditable` where the result would not be what is meant

Objects are merged, lists of named objects by name, and what is named `thoughtline` is ours and replaced whole. Each
module reads its own result again: an edit that does not say what it should is not made.
"""
