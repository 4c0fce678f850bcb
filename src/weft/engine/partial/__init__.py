"""Partials from rows, inside tasks: hash tables of bounded size, key codes, grouping from rows."""
