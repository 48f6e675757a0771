"""The way back: which outcome is told when, in which words, and what was heard of it."""
