"""Colours and shapes: apart for colour-blind eyes, on white and on black, on a screen and on paper."""

from __future__ import annotations

from dataclasses import dataclass

from standout.plots import COLOURS

# Names of the page's colours, which are a little lighter on a dark page, and what they are on white.
ON_WHITE = {**{f"c{index}": colour for index, colour in enumerate(COLOURS)}, "grey": "#7b838c"}
N_COLOURS = len(COLOURS)


@dataclass(frozen=True)
class Shape:
    """A marker, as Bokeh and matplotlib call it, and drawn in a square of 16 units.

    Attributes
    ----------
    bokeh, matplotlib : str
    outline : str
        An SVG path.
    """

    bokeh: str
    matplotlib: str
    outline: str


SHAPES = (
    Shape("circle", "o", "M8 2a6 6 0 1 0 .01 0z"),
    Shape("triangle", "^", "M8 2l6.5 11.5h-13z"),
    Shape("square", "s", "M3 3h10v10h-10z"),
    Shape("diamond", "D", "M8 1l5.5 7l-5.5 7l-5.5-7z"),
    Shape("inverted_triangle", "v", "M8 14l6.5-11.5h-13z"),
    Shape("hex", "h", "M8 1.5l5.8 3.2v6.6l-5.8 3.2l-5.8-3.2v-6.6z"),
    Shape("star", "*", "M8 1l2 4.8l5.2.4l-4 3.4l1.3 5l-4.5-2.7l-4.5 2.7l1.3-5l-4-3.4l5.2-.4z"),
)
DASHES = ("5 4", "none", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Style:
    """How the points of one group, or of one dataset, look.

    Attributes
    ----------
    colour : str
        The name of a colour: "c0" to "c6", or "grey".
    shape : Shape
    """

    colour: str
    shape: Shape

    @property
    def css(self) -> str:
        """The colour as the page knows it."""
        return f"var(--{self.colour})"

    @property
    def on_white(self) -> str:
        """The colour as a number."""
        return ON_WHITE[self.colour]


def group_styles(names: tuple[str, ...]) -> tuple[Style, ...]:
    """Give each group of labels a colour and a shape; what is left over is grey."""
    return tuple(
        Style("grey", SHAPES[0])
        if name.startswith("other labels (")
        # The second time a colour comes round, it has another shape.
        else Style(f"c{index % N_COLOURS}", SHAPES[(index + 2 * (index // N_COLOURS)) % len(SHAPES)])
        for index, name in enumerate(names)
    )


def target_style() -> Style:
    """Give the style of a target without labels."""
    return Style("c0", SHAPES[0])


def background_style(number: int) -> Style:
    """Give the style of a background, counted from 0: faint, each with another shape."""
    return Style("grey", SHAPES[(0, 2, 1, 3, 4)[number % 5]])
