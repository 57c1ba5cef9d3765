"""Adds settings to another program's file and leaves everything else in it unchanged, comments included.

    file's text, lines to add ── edited ──▶ text      by the file's language: one module for each
                                       └──▶ `Uneditable` if the result would be wrong

Objects are merged, lists of named objects by name, and an object named `thoughtline` is ours and replaced entirely.
Each module decodes its own result: a wrong edit is not made.
"""
