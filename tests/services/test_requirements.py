"""What a program requires: read from its head, and resolved into a lock when it is saved."""

from __future__ import annotations

import platform

import pytest

from tests import wheels
from webapp import limits
from webapp.errors import ApiError
from webapp.scenarios.services import requirements
from webapp.scenarios.services.requirements import ResolvedRequirements, parse


@pytest.fixture
def index(tmp_path, monkeypatch):
    return wheels.index(tmp_path, monkeypatch)


def wanted(code):
    text = requirements.read(code)
    assert text.faults == []
    return text.requirements


def refused(code):
    text = requirements.read(code)
    assert {(fault.path, fault.code) for fault in text.faults} == {("code", "invalid_requirement")}
    return text.faults[0].message


def fault_of(code, *more):
    with pytest.raises(ApiError) as caught:
        requirements.resolve(code, *more)
    assert caught.value.code == "validation_error"
    (fault,) = caught.value.details["fields"]
    assert fault["path"] == "code"
    return fault


# --- Reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "# requirements: tenacity, pandas>=2,<3\nimport x\n",
        "#requirements:tenacity,pandas >= 2, < 3",
        "# requirements: tenacity pandas>=2,<3",
        "#!/usr/bin/env python3\n# A program\n\n# requirements: tenacity\n# requirements: pandas (>=2,<3)\n",
        '"""What it does."""\n\nimport os\nfrom a import (\n    b,\n)\n# requirements: tenacity, pandas>=2,<3\nx = 1\n',
        "# requirements:\n#   tenacity\n#   - pandas>=2,<3\n# Loads customers.\n",
        "# requirements: tenacity,\n#    pandas>=2,<3\nprint(1)\n",
        '# /// script\n# dependencies = [\n#   "tenacity",\n#   "pandas>=2,<3",\n# ]\n# ///\n',
        '# requirements: tenacity\r\n# /// script\r\n# dependencies = ["pandas>=2,<3", "tenacity"]\r\n# ///\r\n',
        '# requirements: tenacity, pandas>=2,<3\ndef broken(:\n    """',
        "\ufeff# requirements: tenacity, pandas>=2,<3\n",
    ],
)
def test_requirements_in_the_header_have_many_formats(code):
    assert wanted(code) == ["tenacity", "pandas>=2,<3"]


def test_extras_markers_and_every_operator_are_kept():
    line = 'a[x, y]~=1.2, b ; python_version < "3.9", c===1, d!=1.*, e==1+local.2'
    assert wanted(f"# requirements: {line}") == [
        "a[x,y]~=1.2",
        'b ; python_version < "3.9"',
        "c===1",
        "d!=1.*",
        "e==1+local.2",
    ]


@pytest.mark.parametrize(
    "code",
    [
        "print(1)\n# nothing: here\n",
        "x = '''\n# requirements: in-a-text\n'''\n",
        "def f():\n    # requirements: within\n    pass\n",
        "import x  # requirements: at-the-end\n",
        "# Requirements: the ERP must be reachable\n",
        '# /// other\n# dependencies = ["a"]\n# ///\n',
        "# requirements: rowsmith\n",
    ],
)
def test_similar_texts_are_not_matched(code):
    assert wanted(code) == []


def test_a_comment_below_the_first_statement_is_ignored_with_a_warning():
    text = requirements.read("import a\nx = 1\n# requirements: late\n")
    assert text.requirements == []
    assert [(warning.code, "Line 3" in warning.message) for warning in text.warnings] == [
        ("late_requirements", True)
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("https://example.org/a.whl", "is a URL"),
        ("git+https://example.org/a.git", "is a URL"),
        ("a @ https://example.org/a.whl", "is a URL"),
        ("a@file:///etc", "is a URL"),
        ("./local", "file or folder"),
        ("../other/a.whl", "file or folder"),
        ("/etc/passwd", "file or folder"),
        ("a.tar.gz/../x", "file or folder"),
        ("-r other.txt", "another file"),
        ("--requirement=other.txt", "another file"),
        ("-c constraints.txt", "another file"),
        ("-e .", "editable"),
        ("--editable .", "editable"),
        ("--index-url https://example.org", "the operator"),
        ("--extra-index-url=https://example.org", "the operator"),
        ("-i https://example.org", "the operator"),
        ("--find-links /tmp", "the operator"),
        ("--pre", "option"),
        (">=1", "not a valid requirement"),
        ("a=1", "not a valid requirement"),
        ("$(id)", "not a valid requirement"),
    ],
)
def test_requirements_other_than_package_names_are_rejected_by_kind(line, why):
    assert why in refused(f"# requirements: {line}")
    block = refused(f"# /// script\n# dependencies = ['{line}']\n# ///\n")
    assert why in block


@pytest.mark.parametrize(
    "block",
    [
        "dependencies = [",
        "dependencies = 'a'",
        "dependencies = [1]",
        "requires-python = 3",
        "requires-python = 'x'",
    ],
)
def test_an_unreadable_block_is_reported(block):
    refused(f"# /// script\n# {block}\n# ///\n")


def test_two_blocks_are_one_too_many():
    block = '# /// script\n# dependencies = ["a"]\n# ///\n'
    assert "more than one" in refused(block + "\n" + block)


def test_another_python_version_is_rejected():
    text = requirements.read('# /// script\n# requires-python = ">=3.99"\n# ///\n')
    assert [fault.code for fault in text.faults] == ["wrong_python"]
    assert platform.python_version() in text.faults[0].message
    assert wanted('# /// script\n# requires-python = ">=3.9"\n# ///\n') == []


def test_too_many_are_rejected():
    many = ", ".join(f"p{number}" for number in range(limits.MAX_REQUIREMENTS + 1))
    assert str(limits.MAX_REQUIREMENTS) in refused(f"# requirements: {many}")


# --- Resolving ----------------------------------------------------------------------------------------------


def test_a_program_without_requirements_does_not_call_uv(app, monkeypatch):
    monkeypatch.setattr(requirements, "run_uv", lambda *_, **__: pytest.fail("uv was called"))
    with app.app_context():
        assert requirements.resolve("print(1)\n") == ResolvedRequirements([], "", "")


def test_a_lock_contains_the_requirements_next_to_the_common_libraries_with_hashes(app, index):
    with app.app_context():
        found = requirements.resolve("# requirements: tool\n")
    assert found.requirements == ["tool"]
    # The common library keeps the version that every program has.
    assert requirements.packages_in(found.lock) == {"beside": "2.0", "common": "1.0", "tool": "2.0"}
    assert found.lock.count("--hash=sha256:") == 3
    assert str(index.folder) not in found.lock
    assert "://" not in found.lock
    assert found.environment == requirements.lock_digest(found.lock)
    assert ResolvedRequirements.from_pins(found.to_pins()) == found


def test_a_common_library_can_be_required_in_another_version(app, index):
    with app.app_context():
        found = requirements.resolve("# requirements: common>=2\n")
    assert requirements.packages_in(found.lock) == {"common": "2.0"}


def test_other_code_with_the_same_requirements_keeps_its_lock_without_asking(app, index, monkeypatch):
    with app.app_context():
        first = requirements.resolve("# requirements: tool<2, beside\n")
        index.add("beside", "3.0")
        more = requirements.resolve("# requirements: tool<2, beside, common\n", first)
        assert requirements.packages_in(more.lock) == requirements.packages_in(first.lock), (
            "what stays keeps its version"
        )
        newest = requirements.resolve("# requirements: tool<2, beside\n", first, refresh=True)
        assert requirements.packages_in(newest.lock)["beside"] == "3.0"
        monkeypatch.setattr(requirements, "run_uv", lambda *_, **__: pytest.fail("uv was called"))
        assert requirements.resolve("# requirements: tool<2, beside\nprint(2)\n", first) == first


def test_a_package_that_is_not_there_is_named(app, index):
    with app.app_context():
        fault = fault_of("# requirements: toool\n")
        assert fault["code"] == "not_resolved"
        assert "toool was not found" in fault["message"]
        assert "part of Python" in fault_of("# requirements: json\n")["hint"]
        assert fault_of("# requirements: yaml\n")["hint"] == "Did you mean `pyyaml`?"
        reported = fault_of("# requirements: tool>=3\n")["message"]
    assert "tool" in reported
    assert str(index.folder) not in reported


def test_a_package_that_would_have_to_be_built_is_rejected(app, index):
    (index.folder / "source-1.0.tar.gz").write_bytes(b"no archive, and never opened")
    with app.app_context():
        fault = fault_of("# requirements: source\n")
    assert (fault["code"], "wheel" in fault["message"]) == ("not_resolved", True)
    assert "wheel" in fault["hint"]


def test_an_unavailable_index_is_reported_without_its_address(app, monkeypatch, tmp_path):
    for name in ("UV_NO_INDEX", "UV_FIND_LINKS", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://user:pass-word@127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    with app.app_context():
        fault = fault_of("# requirements: tool\n")
    assert fault["code"] == "index_unreachable"
    assert "cannot be reached" in fault["message"]
    assert not [
        word for word in ("127.0.0.1", "pass-word", "simple", str(tmp_path)) if word in fault["message"]
    ]


def test_a_package_whose_metadata_fills_the_memory_is_rejected(app, index, monkeypatch):
    monkeypatch.setattr(limits, "UV_MEMORY_BYTES", 256 * limits.MB)
    about = "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\nDescription: "
    index.add("hostile", "1.0", files={"{stem}.dist-info/METADATA": about + "x" * 300 * limits.MB})
    with app.app_context():
        fault = fault_of("# requirements: hostile\n")
    assert (fault["code"], fault["message"]) == (
        "not_resolved",
        "The requirements cannot be met. The metadata of the packages needs too much memory.",
    )


def test_a_package_that_unpacks_to_more_than_the_space_of_environments_is_rejected(
    app, index, monkeypatch, tmp_path
):
    monkeypatch.setattr(limits, "ENVIRONMENTS_BYTES", 20 * limits.MB)
    monkeypatch.delenv("UV_CACHE_DIR")
    index.add("hostile", "1.0", files={f"big{number}.bin": "x" * 8 * limits.MB for number in range(4)})
    with app.app_context():
        fault = fault_of("# requirements: hostile\n")
    assert fault["code"] == "not_resolved"
    assert "need more than 20,971,520 bytes" in fault["message"]
    cache = requirements.cache_folder(app.config["SETTINGS"].data_dir)
    assert requirements.disk_bytes([cache]) < 8 * limits.MB


def test_resolving_ends_in_time(app, index, monkeypatch):
    monkeypatch.setattr(limits, "RESOLVE_SECONDS", 0.0)
    with app.app_context():
        assert "longer than" in fault_of("# requirements: tool\n")["message"]


def test_uv_gets_nothing_of_this_process_but_where_packages_come_from(tmp_path):
    own = {
        "SECRET_KEY": "x",
        "VAULT_KEYS": "x",
        "PYTHONPATH": "x",
        "UV_PYTHON": "x",
        "UV_OVERRIDE": "x",
        "PIP_INDEX_URL": "https://mirror",
        "PIP_FIND_LINKS": "/a /b",
        "HTTPS_PROXY": "http://proxy",
    }
    found = requirements.uv_environment(own, tmp_path)
    assert not [
        name
        for name in ("SECRET_KEY", "VAULT_KEYS", "PYTHONPATH", "UV_PYTHON", "UV_OVERRIDE")
        if name in found
    ]
    assert found["UV_DEFAULT_INDEX"] == "https://mirror"
    assert found["UV_FIND_LINKS"] == "/a,/b"
    assert found["HTTPS_PROXY"] == "http://proxy"
    # uv's own environment variables take precedence over those of pip.
    assert "UV_DEFAULT_INDEX" not in requirements.uv_environment(
        {**own, "UV_INDEX_URL": "https://own"}, tmp_path
    )


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\x1f", "\u00a0", "\u3000"])
def test_every_white_space_separates_requirements(sign):
    text = parse(f"# requirements: tenacity{sign}-e{sign}.\nprint(1)\n")
    assert text.requirements == ["tenacity"]
    assert "editable" in text.faults[0].message


def test_errors_of_requirements_are_listed_up_to_a_maximum():
    assert len(parse("#" + " requirements:" * 20_000).faults) == limits.MAX_FAULTS
    many = ", ".join(['"./x"'] * 5_000)
    assert len(parse(f"# /// script\n# dependencies = [{many}]\n# ///\n").faults) == limits.MAX_FAULTS
