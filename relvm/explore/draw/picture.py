"""Pictures: matplotlib figures that Jupyter shows as images.

Only `new_figure` imports this module, because matplotlib is optional.  A picture uses neither pyplot nor another global
state of matplotlib.
"""

from __future__ import annotations

import base64
import io
from typing import Any

from matplotlib.figure import Figure

from relvm.display import MAX_HEIGHT

_PIXELS = 96  # pixels per inch in browsers
_MAX_SVG_BYTES = 256 << 10  # a larger picture is shown as PNG
_MAX_PNG_PIXELS = 32 << 20  # a picture with more pixels, or a longer side than the next limit, is always shown as SVG
_MAX_PNG_SIDE = 32_000
_MAX_SAVED_PIXELS = 64 << 20  # limit for a file in a format of pixels, which needs 256 MB of memory
_MAX_SAVED_SIDE = 16_000
_VECTOR_FORMATS = ("svg", "svgz", "pdf", "ps", "eps", "pgf")
_MAX_WIDTH = 1400  # pixels; a picture that is wider or higher is shown in a box that scrolls


class Picture(Figure):
    """A figure that Jupyter shows as an image: SVG if that is small and the notebook is trusted, otherwise PNG."""

    def __str__(self) -> str:
        width, height = self.get_size_inches()
        return f"<picture of {width:.1f} x {height:.1f} inches; Jupyter shows it, and savefig writes it to a file>"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the image and a line of text by MIME type, and the metadata of the image, for Jupyter."""
        width, height = (round(_PIXELS * float(side)) for side in self.get_size_inches())
        kind, image = "image/svg+xml", self._rendered("svg", metadata={"Date": None})
        forms = {"text/plain": str(self)}
        if 4 * width * height <= _MAX_PNG_PIXELS and 2 * max(width, height) <= _MAX_PNG_SIDE:
            png = self._rendered("png", dpi=2 * _PIXELS)
            forms["image/png"] = base64.b64encode(png).decode()
            if len(image) > _MAX_SVG_BYTES:
                kind, image = "image/png", png
        if width > _MAX_WIDTH or height > 2 * MAX_HEIGHT:
            forms["text/html"] = _scrollable_image(kind, image, width, height)
        elif kind == "image/svg+xml":
            forms[kind] = image.decode()
        return forms, {"image/png": {"width": width, "height": height}} if "image/png" in forms else {}

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file, as `matplotlib.figure.Figure.savefig`.

        If a picture made of pixels would be larger than most viewers can show, it gets fewer pixels per inch.
        """
        dpi = options.get("dpi", self.dpi)
        if isinstance(dpi, int | float) and not str(options.get("format", fname)).lower().endswith(_VECTOR_FORMATS):
            width, height = map(float, self.get_size_inches())
            largest = min(_MAX_SAVED_SIDE / max(width, height), (_MAX_SAVED_PIXELS / (width * height)) ** 0.5)
            options["dpi"] = min(dpi, largest)
        super().savefig(fname, **options)

    def png(self) -> bytes:
        """Return the figure in the format PNG, with the pixels of a screen."""
        return self._rendered("png", dpi=_PIXELS)

    def _rendered(self, suffix: str, **options: Any) -> bytes:
        out = io.BytesIO()
        super().savefig(out, format=suffix, **options)
        return out.getvalue()


def _scrollable_image(kind: str, image: bytes, width: int, height: int) -> str:
    """Return an image as HTML, at full size in a box that scrolls.  kind: the MIME type.  width, height: in pixels."""
    source = f"data:{kind};base64,{base64.b64encode(image).decode()}"
    size = f"width: {width}px; height: {height}px; max-width: none"
    return f'<div style="max-height: {2 * MAX_HEIGHT}px; overflow: auto"><img src="{source}" style="{size}"></div>'
