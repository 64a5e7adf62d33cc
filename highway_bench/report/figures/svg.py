"""Figures as SVG: deterministic and few bytes, ids that are unique on a page, a title and text for screen readers."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from typing import Final

from highway_bench.report.figures.base import Picture, settings

SVG: Final = "http://www.w3.org/2000/svg"
XLINK: Final = "http://www.w3.org/1999/xlink"
REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
TARGET: Final = re.compile(r"(?:^|url\()#([^)]+)")

ET.register_namespace("", SVG)
ET.register_namespace("xlink", XLINK)


FONTS: Final = ("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
"""The font of figures, and those of a reader without it."""


def svg_text(picture: Picture) -> str:
    """``picture`` as one ``<svg>`` element that scales to its container and includes its title and alt text."""
    buffer = io.BytesIO()
    with settings():
        picture.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ET.fromstring(buffer.getvalue())  # the parser drops comments
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    targets = {one for element in root.iter() for value in element.attrib.values() for one in TARGET.findall(value)}
    for element in root.iter():
        if element.get("id") not in targets:
            element.attrib.pop("id", None)
        _renamed(element, picture.name)
        element.text, element.tail = (text if text and text.strip() else None for text in (element.text, element.tail))
    del root.attrib["width"], root.attrib["height"]
    title, description = ET.Element(f"{{{SVG}}}title"), ET.Element(f"{{{SVG}}}desc")
    title.text, description.text = picture.title, picture.alt
    title.set("id", f"{picture.name}-title")
    description.set("id", f"{picture.name}-desc")
    root.insert(0, description)
    root.insert(0, title)
    root.set("role", "img")
    root.set("aria-labelledby", f"{picture.name}-title {picture.name}-desc")
    return ET.tostring(root, encoding="unicode").replace(*FONTS)


def _renamed(element: ET.Element, name: str) -> None:
    """Prefix an element's id, and the ids it refers to, with the picture's name."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
            element.set(key, f"#{name}-{value[1:]}")
        elif "url(#" in value:
            element.set(key, REFERENCE.sub(rf"url(#{name}-\1)", value))
