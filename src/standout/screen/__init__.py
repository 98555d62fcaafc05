"""A screen: many targets against shared controls."""

from standout.screen._screen import screen
from standout.screen._table import Screen, plot_screen

__all__ = ["Screen", "plot_screen", "screen"]
