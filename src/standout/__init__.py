"""What stands out in one dataset against others."""

__version__ = "0.1.0.dev0"
