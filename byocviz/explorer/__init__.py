"""The notebook explorer: every step of the flow by widgets, run when it is first asked for.

``byocviz.explore(mod)`` makes an `Explorer`; `Session` is the same without widgets. Needs
``byocviz[notebook]``; the session alone does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byocviz.explorer.explorer import Explorer
    from byocviz.explorer.session import Session

__all__ = ["Explorer", "Session", "explore"]


def explore(
    mod_or_model_or_path: Any,
    backend: Any = "tensorrt",
    *,
    height: int = 680,
    isolated: bool | None = None,
    **settings: Any,
) -> Explorer:
    """A widget that walks a module through the flow, one step at a time, and changes it live.

    The arguments are those of `byocviz.record`, but for ``verify``, ``inputs`` and ``progress``;
    ``height`` of the drawing is in pixels. A step runs when it is first looked at; display the
    explorer, or let it be the last value of a cell. ``explorer.recording`` is a `Recording` of
    what ran.

    ``isolated`` runs TVM's passes in a process of their own, so that one that crashes natively
    becomes a message in the widget, and can be cancelled at once. None: on where this TVM was
    built with the backend's own codegen. It needs a backend that is given by name.

    Raises `MissingPackage` without ``byocviz[notebook]`` or the viewer's bundle, and what
    `byocviz.record` raises for what it is given.
    """
    try:
        import anywidget  # noqa: F401
        import ipywidgets  # noqa: F401
    except ImportError as error:
        from byocviz.errors import missing

        raise missing("anywidget or ipywidgets", "notebook", "to explore in a notebook") from error
    from byocviz.explorer.explorer import Explorer

    return Explorer(mod_or_model_or_path, backend, height=height, isolated=isolated, **settings)


def __getattr__(name: str) -> Any:
    if name == "Explorer":
        from byocviz.explorer.explorer import Explorer

        return Explorer
    if name == "Session":
        from byocviz.explorer.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
