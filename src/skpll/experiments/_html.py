"""Building HTML so that text is always escaped."""

from __future__ import annotations

import html

__all__ = ["Html", "element", "join"]


class Html(str):
    """Text that is markup already; any other text is escaped when it becomes part of an element."""

    __slots__ = ()


def element(name: str, *children: str | None, **attributes: str | bool | None) -> Html:
    """Make an element.

    Parameters
    ----------
    name : str
        Name of the tag.
    *children : str or Html
        What is inside; plain text is escaped, None is left out.
    **attributes : str or bool
        Its attributes: None and False are left out, an underscore stands for a hyphen, and one at
        the end (``class_``) for nothing.

    Returns
    -------
    Html

    Examples
    --------
    >>> from skpll.experiments._html import element
    >>> element("p", "a < b", element("br"), class_="note")
    '<p class="note">a &lt; b<br></p>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in ("br", "meta", "wbr"):
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | None) -> Html:
    """Put pieces after one another; plain text is escaped, None is left out.

    Parameters
    ----------
    *children : str or Html
        The pieces.

    Returns
    -------
    Html
    """
    return Html(
        "".join(
            child if isinstance(child, Html) else html.escape(child, quote=False)
            for child in children
            if child is not None
        )
    )
