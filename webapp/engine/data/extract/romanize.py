"""Words of any script in the letters a to z, for the local parts of e-mail addresses and for user names."""

from __future__ import annotations

import unicodedata

_LATIN = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ŋ": "n", "ħ": "h",
    "ə": "a",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue"}
_DANISH = {"å": "aa", "ø": "oe", "æ": "ae"}

# GOST R 7.0.34 (Russian, simplified), the Ukrainian resolution 55 of 2010, the Bulgarian Transliteration Act of 2009.
_RUSSIAN = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch  y  e yu ya".split(" "),
        strict=True,
    )
)
_UKRAINIAN = dict(
    zip(
        "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
        "a b v h g d e ie zh z y i i i k l m n o p r s t u f kh ts ch sh shch  iu ia".split(" "),
        strict=True,
    )
)
_BULGARIAN = _RUSSIAN | {"х": "h", "щ": "sht", "ъ": "a", "ь": "y", "ц": "ts"}

# ELOT 743, type 2, without its rules for pairs of vowels other than ου.
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        "a v g d e z i th i k l m n x o p r s s t y f ch ps o".split(" "),
        strict=True,
    )
)

# Revised Romanization of Korean, syllable by syllable.
_INITIALS = "g kk n d tt r m b pp s ss  j jj ch k t p h".split(" ")
_VOWELS = "a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i".split(" ")
_FINALS = " k k k n n n t l k m l l l p l m p p t t ng t t k t p t".split(" ")

# Hanyu Pinyin of the characters in Chinese given names and the hundred most frequent family names.
_PINYIN = dict(
    part.split(":")
    for part in (
        "王:wang 李:li 张:zhang 刘:liu 陈:chen 杨:yang 黄:huang 吴:wu 赵:zhao 周:zhou 徐:xu 孙:sun 马:ma 朱:zhu "
        "胡:hu 林:lin 郭:guo 何:he 高:gao 罗:luo 郑:zheng 梁:liang 谢:xie 宋:song 唐:tang 许:xu 邓:deng 冯:feng "
        "韩:han 曹:cao 曾:zeng 彭:peng 萧:xiao 蔡:cai 潘:pan 田:tian 董:dong 袁:yuan 余:yu 叶:ye 蒋:jiang 杜:du "
        "苏:su 魏:wei 程:cheng 吕:lyu 丁:ding 沈:shen 任:ren 姚:yao 卢:lu 傅:fu 钟:zhong 姜:jiang 崔:cui 谭:tan "
        "廖:liao 范:fan 汪:wang 陆:lu 金:jin 石:shi 戴:dai 贾:jia 韦:wei 夏:xia 邱:qiu 方:fang 侯:hou 邹:zou "
        "熊:xiong 孟:meng 秦:qin 白:bai 江:jiang 阎:yan 薛:xue 尹:yin 段:duan 雷:lei 鞠:ju 黎:li 史:shi 龙:long "
        "陶:tao 贺:he 顾:gu 毛:mao 郝:hao 龚:gong 邵:shao 万:wan 钱:qian 严:yan 赖:lai 覃:qin 洪:hong 武:wu 莫:mo "
        "孔:kong 东:dong 丹:dan 丽:li 云:yun 亮:liang 伟:wei 佳:jia 俊:jun 倩:qian 健:jian 兰:lan 兵:bing 军:jun "
        "冬:dong 凤:feng 凯:kai 刚:gang 利:li 勇:yong 华:hua 博:bo 国:guo 坤:kun 娜:na 娟:juan 婷:ting 宁:ning 宇:yu "
        "小:xiao 岩:yan 峰:feng 帅:shuai 帆:fan 平:ping 建:jian 强:qiang 彬:bin 志:zhi 想:xiang 慧:hui 成:cheng "
        "敏:min 文:wen 斌:bin 旭:xu 明:ming 春:chun 晨:chen 晶:jing 杰:jie 柳:liu 桂:gui 梅:mei 楠:nan 欢:huan "
        "欣:xin 波:bo 洁:jie 洋:yang 浩:hao 海:hai 涛:tao 淑:shu 燕:yan 玉:yu 玲:ling 珍:zhen 琳:lin 琴:qin 瑜:yu "
        "瑞:rui 璐:lu 畅:chang 磊:lei 秀:xiu 红:hong 艳:yan 芝:zhi 花:hua 芳:fang 英:ying 荣:rong 莉:li 莹:ying "
        "萍:ping 超:chao 辉:hui 鑫:xin 阳:yang 雪:xue 霞:xia 静:jing 颖:ying 飞:fei 香:xiang 鹏:peng"
    ).split()
)

_BY_LANGUAGE = {
    "de": _GERMAN, "da": _DANISH, "nb": _DANISH, "ru": _RUSSIAN, "uk": _UKRAINIAN, "bg": _BULGARIAN, "el": _GREEK,
    "zh": _PINYIN,
}  # fmt: skip


def spelled(word: str, locale: str) -> str:
    """``word`` in Latin letters without accents, its case and whatever is no letter kept; characters that no rule
    knows are left out."""
    table = _BY_LANGUAGE.get(locale.partition("_")[0], {})
    if table is _GREEK:
        word = _plain(word).replace("ου", "ou").replace("Ου", "Ou")
    return "".join(_letter(ch, table) for ch in unicodedata.normalize("NFC", word))


def _plain(word: str) -> str:
    return "".join(ch for ch in unicodedata.normalize("NFKD", word) if not unicodedata.combining(ch))


def _letter(ch: str, table: dict[str, str]) -> str:
    low = ch.lower()
    if ch.isascii():
        return ch
    if "가" <= ch <= "힣":
        block, final = divmod(ord(ch) - ord("가"), 28)
        initial, vowel = divmod(block, 21)
        return _INITIALS[initial] + _VOWELS[vowel] + _FINALS[final]
    plain = _plain(low)
    found = table.get(low, _LATIN.get(low))
    if found is None:
        found = plain if plain.isascii() else "".join(table.get(c, _LATIN.get(c, "")) for c in plain)
    return found.capitalize() if ch != low else found


def letters(word: str, locale: str) -> str:
    """``word`` in the letters a to z alone; empty where nothing is left."""
    return "".join(ch for ch in spelled(word, locale).lower() if "a" <= ch <= "z")
