"""The order of the examples: as one would teach them."""

from __future__ import annotations

ORDER = [
    "plot_first_look.py",
    "plot_several_backgrounds.py",
    "plot_kernel_circles.py",
    "plot_filters_and_patterns.py",
    "plot_pipeline.py",
    "plot_shrinkage_path.py",
    "plot_contrastive_alpha.py",
    "plot_how_many_components.py",
    "plot_stability.py",
    "plot_wide_data.py",
    "plot_sites.py",
    "plot_single_cell.py",
    "plot_contaminated_background.py",
    "plot_unequal_preprocessing.py",
    "plot_ratio_or_variance.py",
]


class AsTaught:
    """Sorts file names by their place in the list; those that are not in it come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """Give the place of a file."""
        return (ORDER.index(file) if file in ORDER else len(ORDER), file)
