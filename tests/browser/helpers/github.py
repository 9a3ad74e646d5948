"""HTML as GitHub shows it, after the allow list that it documents.

https://github.com/gjtorikian/html-pipeline (SanitizationFilter) names elements and attributes;
contents of scripts and styles go with their elements.
"""

from __future__ import annotations

import nh3

_ELEMENTS = (
    "h1 h2 h3 h4 h5 h6 h7 h8 br b i strong em a pre code img tt div ins del sup sub p picture ol "
    "ul table thead tbody tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s "
    "strike summary details caption figure figcaption abbr bdo cite dfn mark small source span "
    "time wbr"
)
_EVERYWHERE = (
    "abbr accept accept-charset accesskey action align alt aria-describedby aria-hidden "
    "aria-label aria-labelledby axis border char charoff charset checked clear cols colspan color "
    "compact coords datetime dir disabled enctype for frame headers height hreflang hspace id "
    "ismap label lang maxlength media method multiple name nohref noshade nowrap open progress "
    "prompt readonly rel rev role rows rowspan rules scope selected shape size span start summary "
    "tabindex title type usemap valign value width itemprop"
)
_OWN = {
    "a": {"href"},
    "img": {"src", "longdesc", "loading"},
    "source": {"srcset"},
    "div": {"itemscope", "itemtype"},
    "blockquote": {"cite"},
    "q": {"cite"},
}


def sanitised(html: str, *, pictures: bool = True) -> str:
    """HTML as GitHub would show it; `pictures` says whether embedded ones (``data:``) pass."""
    elements, everywhere = set(_ELEMENTS.split()), set(_EVERYWHERE.split())
    return nh3.clean(
        html,
        tags=elements,
        attributes={element: everywhere | _OWN.get(element, set()) for element in elements},
        clean_content_tags={"script", "style"},
        url_schemes={"http", "https", "mailto", *(["data"] if pictures else [])},
        link_rel=None,
    )
