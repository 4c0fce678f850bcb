"""The served run, for all tests here."""

from serving import served as served
