"""Number plates by country and region.

A country's plates have one form or, in some countries, one for each region. A plate that names a region (by letters, a
number or a name at its beginning or end) names that of the row's place; without a place any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from webapp.engine.types.codes import DIGITS

_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_CYRILLIC = "ABCEHKMOPTXY"
"""Letters that Cyrillic and Latin script share."""


@dataclass(frozen=True)
class PlateFormat:
    """``mask`` is what varies: # a digit, @ a letter of ``letters``, % an age identifier of Great Britain.
    ``region_texts`` are the texts before it by region (ISO 3166-2), ``*`` for regions that are not named."""

    mask: str
    letters: str = _LETTERS
    region_texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_region_last: bool = False
    """Whether the heads stand after the rest."""
    region_masks: dict[str, str] = field(default_factory=dict)
    """A mask for each region, where these differ."""


def _with(
    mask: str, listed: str, letters: str = _LETTERS, *, between: str = "", after: bool = False
) -> PlateFormat:
    heads = {}
    for part in listed.split(";"):
        region, *codes = part.split()
        spaced = [code.replace("_", " ") for code in codes]
        heads[region] = tuple(f"{between}{code}" if after else f"{code}{between}" for code in spaced)
    return PlateFormat(mask, letters, heads, after)


_US = (
    "AL=#@@ ####|AK=@@@ ###|AZ=@@@ ####|AR=### @@@|CA=#@@@###|CO=@@@-@##|CT=@@·#####|DE=######|DC=@@-####|FL=@@@ @##|"
    "GA=@@@ ####|HI=@@@ ###|ID=A ######|IL=@@ #####|IN=###@|IA=@@@ ###|KS=### @@@|KY=@#@###|LA=### @@@|ME=#### @@|"
    "MD=#@@####|MA=#@@ @##|MI=@@@ ####|MN=@@@-###|MS=@@@ ####|MO=@@# @#@|MT=#-#####@|NE=@@@ ###|NV=##@·###|NH=### ####|"
    "NJ=@##-@@@|NM=@@@-@##|NY=@@@-####|NC=@@@-####|ND=### @@@|OH=@@@ ####|OK=@@@-###|OR=### @@@|PA=@@@-####|RI=@@-###|"
    "SC=@@@ ###|SD=#@# ###|TN=@@@ ####|TX=@@@-####|UT=@## #@@|VT=@@@ ###|VA=@@@-####|WA=@@@####|WV=#@@ ###|WI=@@@-####|"
    "WY=#-#####"
).replace("·", "-")
_CA = (
    "AB=@@@-####|BC=@@# ##@|MB=@@@ ###|NB=@@@ ###|NL=@@@ ###|NS=@@@ ###|NT=######|NU=######|ON=@@@@-###|PE=##@ #@|"
    "QC=@## @@@|SK=### @@@|YT=@@@##"
)
_ZA = (
    "GP=@@ ## @@ GP|KZN=@@ ## @@ ZN|EC=@@@ ### EC|FS=@@@ ### FS|LP=@@@ ### L|MP=@@@ ### MP|NC=@@@ ### NC|NW=@@@ ### NW|"
    "WC=CA ###-###"
)
_AU = "NSW=@@@-##@|VIC=#@@-#@@|QLD=###-@@#|SA=S###-@@@|WA=#@@@-###|TAS=@-##-@@|ACT=Y@@-##@|NT=@@-##-@@"


def _masks(listed: str) -> dict[str, str]:
    return dict(part.split("=") for part in listed.split("|"))


_AGES = tuple(f"{year + half:02d}" for half in (0, 50) for year in range(12, 26))
"""The age identifiers of British plates of 2012 to 2025: the year from March on, 50 more from September on."""

PLATES: dict[str, PlateFormat] = {
    "AE": _with("#####", "DU A B C D E F;AZ 1 5 10 11 50;SH 1 2 3;AJ A B C D E H;FU A B C D E F;RK A C D I K M N;"
                "UQ A B C D E F;* A B",
                between=" "),
    "AL": PlateFormat("@@ ### @@"),
    "AM": PlateFormat("## @@ ###"),
    "AR": PlateFormat("@@ ### @@"),
    "AT": _with("##### @", "1 E MA OP;2 KL VI SP;3 WN BN MD KR;4 L LL WE GM;5 S SL HA;6 G GU LE MU;7 I IL KU;8 "
                "B FK DO;9 W",
                between="-"),
    "AU": PlateFormat("@@@-##@", region_masks=_masks(_AU)),
    "AZ": _with("@@-###", "BA 10 77 90 99;GA 20;SM 50;ZAQ 62;* 10 77 90 99", between="-"),
    "BA": PlateFormat("@##-@-###", "AEJKMOT"),
    "BD": _with("##-####", "13 DHAKA_METRO-GA;10 CHATTA_METRO-GA;* DHAKA_METRO-KHA;C DHAKA_METRO-GA;B CHATTA_METRO-GA;"
                "D KHULNA_METRO-GA;E RAJ_METRO-GA;F RANGPUR-GA;G SYLHET-GA;A BARISAL-GA;H MYMENSINGH-GA", between=" "),
    "BE": PlateFormat("1-@@@-###"),
    "BG": _with("#### @@", "01 E;02 A;03 B;04 BT;05 BH;06 BP;07 EB;08 TX;09 K;10 KH;11 OB;12 M;13 PA;14 PK;15 EH;16 PB;"
                "17 PP;18 P;19 CC;20 CH;21 CM;22 C CA CB;23 CO;24 CT;25 T;26 X;27 H;28 Y", _CYRILLIC, between=" "),
    "BH": PlateFormat("######"),
    "BR": PlateFormat("@@@#@##"),
    "CA": PlateFormat("@@@@ ###", region_masks=_masks(_CA)),
    "CH": _with("######", "AG AG;AI AI;AR AR;BE BE;BL BL;BS BS;FR FR;GE GE;GL GL;GR GR;JU JU;LU LU;NE NE;NW NW;OW OW;"
                "SG SG;SH SH;SO SO;SZ SZ;TG TG;TI TI;UR UR;VD VD;VS VS;ZG ZG;ZH ZH", between=" "),
    "CL": PlateFormat("@@-@@-##", "BCDFGHJKLPRSTVWXYZ"),
    "CN": _with("@@####", "BJ 京;TJ 津;HE 冀;SX 晋;NM 蒙;LN 辽;JL 吉;HL 黑;SH 沪;JS 苏;ZJ 浙;AH 皖;FJ 闽;JX 赣;SD 鲁;"
                "HA 豫;HB 鄂;HN 湘;GD 粤;GX 桂;HI 琼;CQ 渝;SC 川;GZ 贵;YN 云;XZ 藏;SN 陕;GS 甘;QH 青;NX 宁;XJ 新",
                "ABCDEFGHJKLMNPQRSTUVWXYZ"),
    "CO": PlateFormat("@@@-###"),
    "CY": PlateFormat("@@@ ###", "ABEHKMNPTYXZ"),
    "CZ": _with("# ####", "10 1A 2A 3A 4A 5A;20 1S 2S 3S;31 1C 2C;32 1P 2P;41 1K;42 1U 2U;51 1L;52 1H;53 1E;63 "
                "1J;64 1B 2B;"
                "71 1M;72 1Z;80 1T 2T"),
    "DE": _with("@@ ####", "BW S KA MA FR HD UL;BY M N A R WÜ IN;BE B;BB P CB FF OPR;HB HB;HH HH;HE F WI KS DA OF;"
                "MV HRO SN HGW;NI H BS OL OS GÖ;NW K D DO E BO AC;RP MZ LU KO TR;SL SB NK HOM;SN DD L C Z;ST MD HAL DE;"
                "SH KI HL FL NMS;TH EF G J WE", between="-"),
    "DK": PlateFormat("@@ ## ###"),
    "DZ": _with("##### 1##", ";".join(f"{n:02d} {n:02d}" for n in range(1, 59)), between=" ", after=True),
    "EE": PlateFormat("### @@@"),
    "EG": PlateFormat("#### @@@", "ABDEFGHKLMNQRSTWY"),
    "ES": PlateFormat("#### @@@", "BCDFGHJKLMNPRSTVWXYZ"),
    "ET": _with("#####", "AA 2-AA-A 2-AA-B;OR 2-OR;AM 2-AM;TI 2-TG;DD 2-DR;* 2-ET"),
    "FI": PlateFormat("@@@-###"),
    "FR": PlateFormat("@@-###-@@", "ABCDEFGHJKLMNPQRSTVWXYZ"),
    "GB": _with("@% @@@", "ENG L B M Y N R K;SCT S;WLS C;NIR N"),
    "GE": PlateFormat("@@-###-@@"),
    "GH": _with("####-##", "AA GR GT GS;AH AS;WP WR;CP CR;EP ER;NP NR;TV VR;BO BR;BE BT;UE UE;UW UW;* GR", between=" "),
    "GR": _with("-####", "I IZ YB ZZ;B NK NB;C KZ;H MI XA;F KE KY;G AX;E PI;D IN;A KB EB;J TP;K MY;L EM PO;M HK;69 AO;"
                "* IZ",
                "ABEZHIKMNOPTYX"),
    "HR": _with("####-@@", "01 ZG;02 KR;03 SK;04 KA;05 VŽ;06 KC;07 BJ;08 RI;09 GS;10 VT;11 PŽ;12 SB;13 ZD;14 OS;15 ŠI;"
                "16 VU;17 ST;18 PU;19 DU;20 ČK;21 ZG", between=" "),
    "HU": PlateFormat("@@ @@-###"),
    "ID": _with("#### @@", "JK B;JB D E F T Z;JT AA AD G H K R;"
                "JI AE AG L M N P S W;YO AB;BA DK;SU BB BK;SN DD;BT A;"
                "LA BE;RI BM;SB BA;SS BG;AC BL;BB BN;BE BD;GO DM;JA BH;KB KB;KI KT;KR BP;KS DA;KT KH;KU KU;MA DE;"
                "MU DG;NB DR EA;NT DH EB ED;PA PA;PB PB;PD PY;PE PA;PS PS;PT PT;SA DB DL;SG DT;SR DC;ST DN;* B",
                between=" "),
    "IE": _with("-#####", "L 231-D 222-D 211-KE 201-LH;M 231-C 222-L 212-KY;C 231-G 221-MO 202-SO;U 231-DL 222-CN"),
    "IL": PlateFormat("###-##-###"),
    "IN": _with("## @@ ####", "AN AN;AP AP;AR AR;AS AS;BR BR;CG CG;CH CH;CT CG;DH DD;DL DL;GA GA;GJ GJ;HP HP;HR "
                "HR;JH JH;"
                "JK JK;KA KA;KL KL;LA LA;LD LD;MH MH;ML ML;MN MN;MP MP;MZ MZ;NL NL;OD OD;OR OD;PB PB;PY PY;RJ RJ;SK SK;"
                "TN TN;TR TR;TS TG;TG TG;UK UK;UP UP;UT UK;WB WB", between=" "),
    "IR": _with("## ب ###", "00 47 57;01 46 56 76;02 62 72 82 92;03 15 25 35;04 17 27 37;05 19 29 39;06 14 24 34;"
                "07 63 73 83 93;08 45 65 75;09 12 32 36 42 74;10 13 23 43 53 67;11 85 95;12 51 61;13 18 28;14 71 81;"
                "15 31 41;"
                "16 98;17 49;18 48 58;19 87 97;20 86 96;21 54 64;22 84 94;"
                "23 10 11 20 22 30 33 40 44 50 55 60 66 77 88 90 99;24 91;"
                "25 16;26 79 89;27 59 69;28 26;29 52;30 68",
                between=" - ", after=True),
    "IS": PlateFormat("@@ @##"),
    "IT": PlateFormat("@@ ###@@"),
    "JO": PlateFormat("##-#####"),
    "JP": _with("## - ##", "01 札幌 函館 旭川;02 青森 八戸;03 岩手;04 宮城 仙台;05 秋田;06 山形 庄内;07 福島 "
                "いわき;08 水戸 つくば;"
                "09 宇都宮 とちぎ;10 群馬 高崎;11 大宮 川口 所沢;12 千葉 習志野 柏;13 品川 練馬 足立 多摩;14 "
                "横浜 川崎 相模;15 新潟 長岡;"
                "16 富山;17 石川 金沢;18 福井;19 山梨;20 長野 松本;21 岐阜 飛騨;22 静岡 浜松 沼津;23 名古屋 "
                "豊橋 三河;24 三重 鈴鹿;25 滋賀;"
                "26 京都;27 大阪 なにわ 堺;28 神戸 姫路;29 奈良;30 和歌山;31 鳥取;32 島根;33 岡山 倉敷;34 広島 "
                "福山;35 山口 下関;36 徳島;"
                "37 香川 高松;38 愛媛;39 高知;40 福岡 北九州 久留米;41 佐賀;42 長崎 佐世保;43 熊本;44 大分;45 "
                "宮崎;46 鹿児島;47 沖縄",
                between=" 300 さ "),
    "KE": PlateFormat("K@@ ###@"),
    "KR": PlateFormat("##가 ####"),
    "LI": PlateFormat("FL #####"),
    "LK": PlateFormat("C@@-####"),
    "LT": PlateFormat("@@@ ###"),
    "LU": PlateFormat("@@ ####"),
    "LV": PlateFormat("@@-####"),
    "MK": _with("####-@@", "85 SK;807 SK;* SK KU TE BT PP", "ABCDEFGHJKLMNOPRSTUVZ", between=" "),
    "MT": PlateFormat("@@@ ###"),
    "MX": PlateFormat("@@@-###-@"),
    "MY": _with("@@ ####", "10 B;14 W V;01 J;07 P;08 A;05 N;06 C;04 M;02 K;03 D;11 T;09 R;12 S;13 Q;15 L;16 F",
                between=""),
    "NG": _with("-###@@", "LA LSR EKY KJA;FC ABC KUJ;KN KMC;RI PHC;OY BDJ LUY MAP;KD DKA MKA ZAR;AB UMA;AD YLA;AK UYY;"
                "AN AWK NEN;"
                "BA BAU;BE MKD;BO MAG;BY YEN;CR CAL;DE ASB WWR;EB AKL;ED BEN;EK ADK;EN ENU;GO GME;IM WER;JI DUT;KE BRK;"
                "KO LKJ;KT KTN;KW LRN;NA LFA;NI MNA;OG AAB;ON AKR;OS OSG;PL JJN;SO SKK;TA JAL;YO DTR;ZA GUS;"
                "* LSR ABC"),
    "NL": PlateFormat("@@-###-@", "BDFGHJKLNPRSTVXZ"),
    "NO": PlateFormat("@@ #####"),
    "NP": _with(" ## च ####", "P1 को मे स;P2 ज ना स;P3 बा ज ना;P4 ग ध;P5 रा लु;P6 क भे;P7 म से;* बा"),
    "NZ": PlateFormat("@@@###"),
    "PH": PlateFormat("@@@ ####"),
    "PK": PlateFormat("@@@-###", "ABCDEFGHJKLMNPQRSTUVWXYZ"),
    "PL": _with("#####", "02 DW DB;04 CB CT;06 LU LZ;08 FG FZ;10 EL EP;12 KR KN KT;14 WA WB WI WE;16 OP ON;18 "
                "RZ RP;20 BI BL;"
                "22 GD GA GS;24 SK SB SO;26 TK TS;28 NO NE;30 PO PK PL;32 ZS ZK", between=" "),
    "PS": PlateFormat("#-####-##"),
    "PT": PlateFormat("@@-##-@@"),
    "RO": _with("## @@@", "AB AB;AR AR;AG AG;B B;BC BC;BH BH;BN BN;BR BR;BT BT;BV BV;BZ BZ;CJ CJ;CL CL;CS CS;CT "
                "CT;CV CV;DB DB;"
                "DJ DJ;GJ GJ;GL GL;GR GR;HD HD;HR HR;IF IF;IL IL;IS IS;MH MH;MM MM;MS MS;NT NT;OT OT;PH PH;SB "
                "SB;SJ SJ;SM SM;"
                "SV SV;TL TL;TM TM;TR TR;VL VL;VN VN;VS VS", between=" "),
    "RS": _with("####-@@", "VO NS SU;RS BG NI KG;00 BG;* BG", between=" "),
    "RU": _with("###@@", "MOW 77 99 97;SPE 78 98;AD 01;BA 02;BU 03;AL 04;DA 05;IN 06;KB 07;KL 08;KC 09;KR 10;KO "
                "11;ME 12;"
                "MO 13;SA 14;SE 15;TA 16;TY 17;UD 18;KK 19;CE 95;CU 21;ALT 22;KDA 23 93;KYA 24;PRI 25;STA 26;"
                "KHA 27;AMU 28;"
                "ARK 29;AST 30;BEL 31;BRY 32;VLA 33;VGG 34;VLG 35;VOR 36;IVA 37;IRK 38;KGD 39;KLU 40;KAM 41;KEM "
                "42;KIR 43;"
                "KOS 44;KGN 45;KRS 46;LEN 47;LIP 48;MAG 49;MOS 50 90;MUR 51;NEN 83;NIZ 52;NGR 53;NVS 54;OMS 55;"
                "ORE 56;ORL 57;PNZ 58;"
                "PER 59;PSK 60;ROS 61;RYA 62;SAM 63;SAR 64;SAK 65;SVE 66 96;SMO 67;TAM 68;TVE 69;TOM 70;TUL 71;"
                "TYU 72;ULY 73;"
                "CHE 74;ZAB 75;YAR 76;YEV 79;KHM 86;CHU 87;YAN 89", _CYRILLIC, after=True),
    "SA": PlateFormat("#### @@@", "ABDEGHJKLNRSTUVXZ"),
    "SE": PlateFormat("@@@ ##@", "ABCDEFGHJKLMNOPRSTUWXYZ"),
    "SI": _with("@@-###", "061 LJ;070 MB;* LJ;052 KR;011 CE;133 CE;050 KP;085 NM;080 MS;"
                "096 MB", between=" "),
    "SK": _with("###@@", "BL BA BL;TA TT;TC TN;NI NR;ZI ZA;BC BB;PV PO;KI KE"),
    "TH": _with("@@ ####", "10 กรุงเทพมหานคร;11 สมุทรปราการ;12 นนทบุรี;13 ปทุมธานี;14 พระนครศรีอยุธยา;15 อ่างทอง;"
                "16 ลพบุรี;17 สิงห์บุรี;18 ชัยนาท;19 สระบุรี;20 ชลบุรี;21 ระยอง;22 จันทบุรี;23 ตราด;24 ฉะเชิงเทรา;"
                "25 ปราจีนบุรี;26 นครนายก;27 สระแก้ว;30 นครราชสีมา;31 บุรีรัมย์;32 สุรินทร์;33 ศรีสะเกษ;"
                "34 อุบลราชธานี;35 ยโสธร;36 ชัยภูมิ;37 อำนาจเจริญ;38 บึงกาฬ;39 หนองบัวลำภู;40 ขอนแก่น;41 อุดรธานี;"
                "42 เลย;43 หนองคาย;44 มหาสารคาม;45 ร้อยเอ็ด;46 กาฬสินธุ์;47 สกลนคร;48 นครพนม;49 มุกดาหาร;"
                "50 เชียงใหม่;51 ลำพูน;52 ลำปาง;53 อุตรดิตถ์;54 แพร่;55 น่าน;56 พะเยา;57 เชียงราย;58 แม่ฮ่องสอน;"
                "60 นครสวรรค์;"
                "61 อุทัยธานี;62 กำแพงเพชร;63 ตาก;64 สุโขทัย;65 พิษณุโลก;66 พิจิตร;67 เพชรบูรณ์;70 ราชบุรี;"
                "71 กาญจนบุรี;72 สุพรรณบุรี;73 นครปฐม;74 สมุทรสาคร;75 สมุทรสงคราม;76 เพชรบุรี;77 ประจวบคีรีขันธ์;"
                "80 นครศรีธรรมราช;81 กระบี่;82 พังงา;83 ภูเก็ต;84 สุราษฎร์ธานี;85 ระนอง;86 ชุมพร;90 สงขลา;91 สตูล;"
                "92 ตรัง;93 พัทลุง;94 ปัตตานี;95 ยะลา;96 นราธิวาส",
                "กขคงจฉชฐฎฒณตถธนบพภมรลวศสอฮ", between=" ", after=True),
    "TR": _with("@@@ ###", ";".join(f"{n:02d} {n:02d}" for n in range(1, 82)), between=" "),
    "TW": PlateFormat("@@@-####", "ABCDEFGHJKLMNPQRSTUVWXYZ"),
    "UA": _with("####@@", "43 AK;05 AB;07 AC;12 AE;14 AH;18 AM;21 AO;23 AP;26 AT;30 AA;32 AI;35 BA;09 BB;46 BC;"
                "48 BE;51 BH;"
                "53 BI;56 BK;59 BM;61 BO;63 AX;65 BT;68 BX;71 CA;77 CE;74 CB;40 CH", _CYRILLIC),
    "US": PlateFormat("#@@@###", region_masks=_masks(_US)),
    "UZ": _with(" @ ### @@", "TK 01;TO 10;SI 20;JI 25;SA 30;FA 40;NG 50;AN 60;QA 70;SU 75;BU 80;XO 90;QR 95;NW "
                "85;* 01"),
    "VN": _with("@-###.##", "HN 29 30 31 32 33 40;SG 41 50 51 59 61 72;DN 43 92;HP 15 16 34;"
                "CT 65 83 95;01 25;02 21 24;04 11;05 26;07 22 23;09 12;13 14;"
                "18 18 35 90;21 36;22 37;23 38;25 73 74;26 75;29 76 82;30 77 81;33 47 78;34 79 85;35 48 49 86;37 62 70;"
                "39 60 93;44 67 68;45 63 66;49 64 71 84;56 98 99;59 69 94;66 17 89;68 19 28 88;69 20 97;71 27",
                between=""),
    "ZA": PlateFormat("@@ ## @@ GP", "BCDFGHJKLMNPRSTVWXYZ", region_masks=_masks(_ZA)),
}  # fmt: skip
"""Plates of private cars in the present series of each country;"
                " in Ethiopia and Nepal in the series that most cars have.
Nigeria's codes are those of some districts of each state; not all of them could be confirmed."""
PLATE_COUNTRIES = tuple(sorted(PLATES))


@dataclass(frozen=True)
class Regions:
    """The texts that name regions on the plates of a country: ``texts[start[state] : start[state] + count[state]]`` are
    those of a state of the vocabulary; the last row of ``start`` and ``count`` stands for places without one."""

    texts: pa.StringArray
    start: np.ndarray
    count: np.ndarray


def compile_regions(country: str, states: list[tuple[str, str]]) -> Regions | None:
    """The region texts of a country for (country, code) of the states of a vocabulary; None if plates name none."""
    heads = PLATES[country].region_texts
    if not heads:
        return None
    listed = [text for region, texts in heads.items() if region != "*" for text in texts] or list(heads["*"])
    any_start, any_count = 0, len(listed)
    place: dict[str, tuple[int, int]] = {}
    texts = list(listed)
    at = 0
    for region, own in heads.items():
        if region == "*":
            place["*"] = len(texts), len(own)
            texts += own
        else:
            place[region] = at, len(own)
            at += len(own)
    other = place.get("*", (any_start, any_count))
    ranges = [place.get(code, other) if land == country else (0, 1) for land, code in states]
    ranges.append((any_start, any_count))
    start, count = np.array(ranges, np.uint64).T
    return Regions(pa.array(texts, pa.string()), start, count)


@cache
def mask_pools(mask: str, letters: str) -> tuple[pa.StringArray, ...]:
    """Return the pools of a mask, whose texts form a plate when joined; see `PlateFormat`."""
    pools_, prefix = [], ""
    for piece in re.findall("#{1,4}|@{1,3}|%|[^#@%]+", mask):
        if piece[0] not in "#@%":
            prefix += piece
            continue
        signs = {"#": DIGITS, "@": letters, "%": _AGES}[piece[0]]
        pools_.append([prefix + "".join(text) for text in product(signs, repeat=len(piece))])
        prefix = ""
    pools_[-1] = [text + prefix for text in pools_[-1]]
    return tuple(pa.array(texts, pa.string()) for texts in pools_)
