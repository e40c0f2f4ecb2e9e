"""Texts that a page must show and never run, for tests of whatever writes pages."""

from __future__ import annotations

#: Markup, ends of what a text stands in, encodings of both, and what is not to be seen.
TEXTS = (
    "<script>document.title='run'</script>", '"><img src=x onerror="document.title=\'run\'">', "'onmouseover='document.title=1",
    "</title><svg onload=alert(1)>", "{{ 7*7 }}{% raw %}", "javascript:alert(1)", "</script><script>document.title='run'</script>", "<!--",
    "-->", "<![CDATA[", "]]>", "\u202eevil\u202c", "&lt;b&gt;", "&#x3c;img src=x&#x3e;", "a\u2028b\u2029c", "\x85",
    "`${document.title='run'}`", "<iframe srcdoc=\"<script>parent.document.title='run'</script>\">", "<base href=http://x.invalid/>",
    "<meta http-equiv=refresh content=0;url=http://x.invalid/>", "<style>*{display:none}</style>", "x" * 3000,
    "<a href=\"javascript:document.title='run'\">x</a>", "http://x.invalid/?a=1&b=2#c", "\x01\x1b[31m",
    "<svg><script>document.title='run'</script></svg>", "<math><mtext></mtext><img src=x onerror=document.title=1>",
    "<details open ontoggle=document.title=1>", "%3Cscript%3E", "\ufeff", "😀" * 50, "\uff41" * 60, "\\", '"', "'", '\\"',
    "</textarea><script>", "<object data=x>", "<link rel=stylesheet href=http://x.invalid>",
    "<form action=http://x.invalid><input autofocus>", "<plaintext>",
    '<noscript><p title="</noscript><img src=x onerror=document.title=1>">', "&", "<", ">",
    "</pre></code></td></table></main></body></html>", "<template><script>1</script></template>",
    "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>1</x:script>", "\u200b\u00ad", "a\tb\nc\rd", "__proto__", "constructor",
    "<input list=names value=1>", "url(javascript:1)", "*/alert(1)/*", "//]]>", "\ud7ff\ue000", "</svg>", "%00", "../../../etc/passwd",
    "#q=x&kind=y",
)  # fmt: skip
