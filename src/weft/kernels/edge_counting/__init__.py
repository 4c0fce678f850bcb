"""Kernels that count edges: exactly, by elimination of primes, and bounds where that takes too long."""
