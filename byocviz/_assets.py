"""Where the bundled files are: beside the code in a checkout, inside the package in a wheel."""

from __future__ import annotations

from pathlib import Path

from byocviz.errors import ByocvizError

_PACKAGE = Path(__file__).resolve().parent


def asset(name: str) -> Path:
    """The path of a bundled file, as ``asset("coffee.jpg")``.

    Raises `ByocvizError` where the file is not there, or ``name`` is not a plain file name.
    """
    if Path(name).name != name or name in ("", ".", ".."):
        raise ByocvizError(
            f"{name!r} is not the name of a bundled file.",
            "Give a file name without a folder, as 'coffee.jpg'.",
        )
    # An installed wheel has no folder beside the package that could be mistaken for ours.
    places = (_PACKAGE / "assets" / name, _PACKAGE.parent / "assets" / name)
    for place in places:
        if place.is_file():
            return place
    raise ByocvizError(
        f"The bundled file {name!r} is missing; looked for {places[0]} and {places[1]}.",
        "Install byocviz again, or, in a checkout, restore it: git checkout -- assets",
    )
