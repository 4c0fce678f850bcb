"""Combining partials over windows, by the kind of the component."""
