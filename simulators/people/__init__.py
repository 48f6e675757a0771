"""Scripted people: occupants' voices, made beforehand and cached, and recordings of real persons."""
