"""Texts that programs stumble over: every one of them can stand in a file, a database and a JSON document.

Characters that XML, CSV or databases refuse altogether (NUL and the like) are left out: they would stop an import
before it shows whether it copes.
"""

from __future__ import annotations

import pyarrow as pa

_KINDS: dict[str, tuple[str, ...]] = {
    "reserved": (
        "undefined", "undef", "null", "NULL", "(null)", "nil", "None", "NIL", "true", "false", "TRUE", "hasOwnProperty",
        "then", "constructor", "__proto__", "\\", "\\\\", "CON", "PRN", "AUX", "NUL", "COM1", "LPT1", "localhost",
        "-", "--", "---", "#N/A", "#REF!", "#DIV/0!", "N/A", "n/a", "yes", "no", "on", "off", "~", "_", "root",
    ),
    "number": (
        "0", "1", "-1", "1.00", "$1.00", "1/2", "1E2", "1E+02", "-$1.00", "1/0", "0/0", "0.0", "-0", "-0.0", "+0", "..",
        ".", "0..0", "0,00", "0,,0", ",", "NaN", "Infinity", "-Infinity", "INF", "1#INF", "0x0", "0xffffffff",
        "0xabad1dea", "999999999999999999999999999999999999999999", "2147483648", "-2147483649", "9223372036854775808",
        "9007199254740993", "1,000.00", "1 000.00", "1'000,00", "01000", "08", "09", "2.2250738585072011e-308",
        "1e309", "٣", "४२", "½", "Ⅷ", "１２３", "2026-02-30", "24:00:60", "1-2", "0/1/0",
    ),
    "quoting": (
        "'", '"', "''", '""', "`", "'\"'", '"\'"\'"\'"\'', "a'b",
        'a"b', "a,b", "a;b", "a\tb", "a|b", "O'Brien", "{", "}",
        "{{", "}}", "{}", "[]", "<", ">", "&", "&amp;", "&lt;b&gt;", "%", "%s", "%d", "%20", "%00", "$", "${HOME}",
        "{0}", "{{7*7}}", "<%= 7*7 %>", "#{7*7}", "\\n", "\\u0041",
        "=1+1", "+1+1", "@SUM(1)", "-1+1", "=cmd|' /C calc'!A0",
    ),
    "whitespace": (
        "", " ", "  leading", "trailing  ", "\t", "\n", "\r\n", "line\nbreak", "line\r\nbreak", "a\u00a0b", "a\u2003b",
        "a\u2028b", "a\u2029b", "\u3000", "a\u200bb", "a\ufeffb",
        "\u2060", "a\u00adb", "two  blanks", "tab\tin between",
    ),
    "unicode": (
        "Ω≈ç√∫˜µ≤≥÷", "åß∂ƒ©˙∆˚¬…æ", "œ∑´®†¥¨ˆøπ“‘", "¡™£¢∞§¶•ªº–≠", "ÅÍÎÏ˝ÓÔÒÚÆ☃", "ЁЂЃЄЅІЇЈЉЊЋЌЍЎЏ", "٠١٢٣٤٥٦٧٨٩",
        "⁰⁴⁵", "₀₁₂", "ด้้้้้", "田中さんにあげて下さい", "パーティーへ行かないか", "和製漢語", "部落格", "사회과학원",
        "찦차를 타고 온 펲시맨", "𠜎𠜱𠝹𠱓", "𝒯𝒽𝑒 𝓆𝓊𝒾𝒸𝓀", "Ｆｕｌｌ ｗｉｄｔｈ",
        "Ⱥ", "İstanbul", "ıIiİ", "straße", "STRASSE", "ẞ", "ﬁﬂﬃ",
        "e\u0301 and é", "A\u030a and Å", "ﷺ", "ﷲ", "שָׁלוֹם", "هَذَا نَص", "\u202eright to left", "\u2066isolate\u2069",
        "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞", "⒯⒣⒠ ⒬⒰⒤⒞⒦", "\ufffd", "\u0378", "\ue000", "☺︎",
    ),
    "emoji": (
        "😍", "👩🏽", "👨‍🦰", "👾 🙇 💁 🙅", "🐵 🙈 🙉 🙊", "❤️ 💔 💌", "👨‍👩‍👧‍👦",
        "🏳️‍🌈", "🇺🇸🇷🇺🇸", "🇩🇪", "1️⃣ 2️⃣ 3️⃣", "✋🏿 💪🏿", "🚾 🆒 🆓",
        "(ﾉ◕ヮ◕)ﾉ*:･ﾟ✧", "¯\\_(ツ)_/¯", "(╯°□°）╯︵ ┻━┻", "ʕ•ᴥ•ʔ", "ᕕ( ᐛ )ᕗ",
    ),
    "injection": (
        "<script>alert(1)</script>", "&lt;script&gt;alert(1);&lt;/script&gt;", "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>", "\"><script>alert(1)</script>", "javascript:alert(1)", "' onmouseover=alert(1) x='",
        "<a href=\"javascript:alert(1)\">x</a>", "]]>", "<!--", "-->", "<?xml version=\"1.0\"?>", "1;DROP TABLE users",
        "1'; DROP TABLE users-- 1", "' OR 1=1 -- 1", "' OR '1'='1", "'; EXEC sp_MSForEachTable 'DROP TABLE ?'; --",
        "admin'--", "%27 OR 1=1", "{\"$gt\": \"\"}", "../../../../etc/passwd%00", "../../../../../etc/hosts",
        "/dev/null; touch /tmp/x ; echo", "`touch /tmp/x`",
        "$(touch /tmp/x)", "@{[system \"touch /tmp/x\"]}", "; ls -la",
        "| cat /etc/hosts", "System(\"ls\")", "Kernel.exit(1)", "${jndi:ldap://127.0.0.1/x}", "{% print 7*7 %}",
        "<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/hosts\">]>",
        "http://a/%%30%30", "file:///etc/hosts", "(|(uid=*))",
    ),
    "long": (
        "a" * 255, "a" * 256, "W" * 1_000, "x y " * 250, "ä" * 1_024, "🙂" * 300, "0" * 400, "/" * 260, "(" * 200,
    ),
}  # fmt: skip


def strings() -> pa.Table:
    """(kind, text): each text once."""
    rows = [(kind, text) for kind, texts in _KINDS.items() for text in texts]
    kinds, texts = zip(*rows, strict=True)
    if len(set(texts)) != len(texts):
        raise ValueError("an awkward text stands twice")
    return pa.table({"kind": kinds, "text": texts})
