"""Work: departments with the titles held in them, titles in other languages, and the legal forms of companies."""

from __future__ import annotations

import pyarrow as pa

from webapp.engine.data.extract.locales import FAKER, LOCALES
from webapp.engine.data.extract.tools import listed, unique

# The English titles of each department; every one of them belongs to one department only.
TITLES = {
    "Accounting": "Accountant|Accounts Payable Clerk|Accounts Receivable Clerk|Bookkeeper|Chief Accountant|"
    "Payroll Clerk|"
    "Senior Accountant|Tax Accountant|Cost Accountant|Internal Auditor",
    "Administration": "Administrative Assistant|Executive Assistant|Office Manager|Receptionist|Facilities Manager|"
    "Office Administrator|Data Entry Clerk|Records Clerk",
    "Business Development": "Business Development Manager|Partnership Manager|Business Development Representative|"
    "Alliance Manager|Head of Business Development|Strategy Analyst",
    "Customer Support": "Customer Support Specialist|Support Engineer|Customer Success Manager|Help Desk Technician|"
    "Support Team Lead|Call Centre Agent|Head of Customer Support|Technical Support Specialist",
    "Design": "Graphic Designer|Product Designer|User Experience Designer|Interaction Designer|Art Director|"
    "Design Researcher|Head of Design|Motion Designer",
    "Engineering": "Software Engineer|Senior Software Engineer|Staff Engineer|Mechanical Engineer|Electrical Engineer|"
    "Civil Engineer|Engineering Manager|Site Reliability Engineer|Data Engineer|Embedded Systems Engineer|"
    "Machine Learning Engineer|Principal Engineer|Frontend Developer|Backend Developer",
    "Finance": "Financial Analyst|Financial Controller|Treasury Manager|Investment Analyst|Chief Financial Officer|"
    "Credit Analyst|Budget Analyst|Risk Manager",
    "Human Resources": "Recruiter|Human Resources Manager|Human Resources Assistant|Compensation Analyst|"
    "Training Coordinator|Talent Acquisition Specialist|People Partner|Benefits Administrator",
    "Information Technology": "Systems Administrator|Network Engineer|Database Administrator|IT Manager|IT Technician|"
    "Security Analyst|Cloud Architect|Business Systems Analyst|Chief Information Officer",
    "Legal": "Paralegal|Legal Assistant|General Counsel|Corporate Lawyer|Contract Manager|Compliance Officer|"
    "Data Protection Officer|Patent Attorney",
    "Logistics": "Warehouse Operative|Warehouse Manager|Logistics Coordinator|Fleet Manager|Delivery Driver|"
    "Forklift Operator|Inventory Planner|Import Export Clerk",
    "Manufacturing": "Production Operator|Production Manager|Machine Operator|Assembly Worker|Welder|Tool Maker|"
    "Plant Manager|Maintenance Technician|Production Planner",
    "Marketing": "Marketing Manager|Content Writer|Brand Manager|Search Engine Marketing Specialist|Event Manager|"
    "Marketing Analyst|Public Relations Manager|Copywriter|Social Media Manager|Chief Marketing Officer",
    "Operations": "Operations Manager|Operations Analyst|Chief Operating Officer|Process Engineer|Project Coordinator|"
    "Programme Manager|Shift Supervisor|Service Delivery Manager",
    "Product Management": "Product Manager|Senior Product Manager|Product Owner|Product Analyst|Head of Product|"
    "Technical Product Manager",
    "Purchasing": "Buyer|Purchasing Manager|Procurement Specialist|Category Manager|Sourcing Analyst|Vendor Manager",
    "Quality Assurance": "Quality Engineer|Test Engineer|Quality Inspector|Quality Manager|Test Automation Engineer|"
    "Calibration Technician",
    "Research and Development": "Research Scientist|Laboratory Technician|Research Engineer|Data Scientist|Chemist|"
    "Research Assistant|Head of Research|Formulation Scientist",
    "Sales": "Sales Representative|Account Executive|Account Manager|Sales Manager|Regional Sales Director|"
    "Inside Sales Representative|Sales Engineer|Retail Assistant|Store Manager|Key Account Manager",
}

_FORMS = {
    "en_US": "Inc|LLC|Corp|Group|Holdings|Partners|and Sons|Company|Associates|Industries",
    "en_GB": "Ltd|PLC|LLP|Group|Holdings|Partners|and Sons|and Co|Associates|Industries",
    "bg_BG": "АД|ЕАД|ЕООД|ООД|КД|СД|Груп|Холдинг",
    "et_EE": "OÜ|AS|Grupp|ja Pojad|TÜ|UÜ",
    "lv_LV": "SIA|AS|Grupa|un Partneri|PS|KS",
    "ja_JP": "株式会社|有限会社|合同会社|商事株式会社|工業株式会社|建設株式会社|電気株式会社|"
    "食品株式会社|運輸株式会社|印刷株式会社",
    "ro_RO": "SRL|SA|SCA|SNC|SCS|Grup",
    "tr_TR": "A.Ş.|Ltd. Şti.|Holding|Ticaret A.Ş.|Sanayi A.Ş.|Grup",
    "ru_RU": "и партнёры|Групп|Холдинг|и сыновья|Трейд|Строй|Сервис|Инвест",
    "uk_UA": "і партнери|Груп|Холдинг|та сини|Трейд|Буд|Сервіс|Інвест",
    "zh_CN": "科技有限公司|网络有限公司|信息有限公司|传媒有限公司|贸易有限公司|电子有限公司|食品有限公司|物流有限公司",
    "ko_KR": "주식회사|유한회사|전자|건설|산업|상사|통운|식품",
}
"""Where Faker has none, or some that nobody writes."""

_MARKS = ("/", "*", "(")
"""Titles with these name two forms of a word at once."""


def departments() -> dict[str, list[str]]:
    """Departments of a company."""
    return {"": list(TITLES)}


def titles() -> pa.Table:
    """(title, department): English job titles; ``department`` is a row of the list of departments."""
    rows = [(title, at) for at, listed_ in enumerate(TITLES.values()) for title in listed_.split("|")]
    held, at = zip(*rows, strict=True)
    return pa.table({"title": pa.array(held), "department": pa.array(at, pa.int32())})


def job_titles() -> dict[str, list[str]]:
    """Job titles in languages other than English."""
    made = {}
    for locale in LOCALES:
        if locale.startswith("en"):
            continue
        found = listed("job", FAKER.get(locale, locale), "jobs") or []
        kept = [
            title for title in unique(found) if len(title) <= 60 and not any(mark in title for mark in _MARKS)
        ]
        if kept:
            made[locale] = kept
    return made


def company_forms() -> dict[str, list[str]]:
    """What follows the name of a company: its legal form, mostly."""
    made = {}
    for locale in LOCALES:
        own = _FORMS.get(locale)
        found = own.split("|") if own else listed("company", FAKER.get(locale, locale), "company_suffixes")
        if found:
            made[locale] = [form for form in unique(found) if not form.startswith("-")]
    # Other English-speaking countries go by British forms.
    return made | {
        locale: made["en_GB"] for locale in LOCALES if locale.startswith("en_") and locale not in made
    }
