"""Texts that a page must show and never run, one of each kind."""

from __future__ import annotations

#: Markup, ends of what a text is in, encodings of both, and what is not to be seen.
TEXTS = (
    "<script>document.title='run'</script>", '"><img src=x onerror="document.title=\'run\'">', "'onmouseover='document.title=1",
    "</title><svg onload=alert(1)>", "{{ 7*7 }}{% raw %}", "javascript:alert(1)", "</script><script>document.title='run'</script>",
    "-->", "]]>", "\u202eevil\u202c", "&lt;b&gt;", "&#x3c;img src=x&#x3e;", "a\u2028b\u2029c", "\x85", "`${document.title='run'}`",
    "<iframe srcdoc=\"<script>parent.document.title='run'</script>\">", "<base href=http://x.invalid/>",
    "<meta http-equiv=refresh content=0;url=http://x.invalid/>", "<style>*{display:none}</style>", "x" * 3000,
    "<a href=\"javascript:document.title='run'\">x</a>", "\x01\x1b[31m", "<details open ontoggle=document.title=1>", "%3Cscript%3E",
    "\ufeff", "😀" * 50, "\\", '"', "'", "</textarea><script>", "<form action=http://x.invalid><input autofocus>", "<plaintext>", "&",
    "</pre></code></td></table></main></body></html>", "\u200b\u00ad", "a\tb\nc\rd", "__proto__", "url(javascript:1)", "*/alert(1)/*",
    "\ud7ff\ue000", "#q=x&kind=y",
)  # fmt: skip
