"""The soak's own instruments: a leak is seen, a peak is not taken for one, and charts are whole SVG."""

from __future__ import annotations

import csv
import random
from xml.etree import ElementTree

from tests.soak import charts, report, sampler


def rows(memory):
    """An hour of samples, whose column `web_mb` follows a function of the second."""
    return [
        {**dict.fromkeys(sampler.COLUMNS, 1.0), "seconds": float(at), "web_mb": memory(at)}
        for at in range(0, 3600, 10)
    ]


def test_a_leak_is_seen_under_noise_and_peaks_are_not_taken_for_one():
    chance = random.Random(1)
    noise = {at: chance.gauss(0, 5) + (400 if chance.random() < 0.2 else 0) for at in range(0, 3600, 10)}
    assert abs(sampler.growth(rows(lambda at: 300 + noise[at]), "web_mb")) < 10
    leaking = sampler.growth(rows(lambda at: 300 + noise[at] + 100 * at / 3600), "web_mb")
    assert 80 < leaking < 120


def test_memory_loaded_at_the_start_is_not_counted():
    found = rows(lambda at: min(300, 100 + at))
    assert sampler.growth(sampler.warmed(found), "web_mb") == 0


def test_a_busier_worker_is_not_a_growing_one_and_a_growing_one_is_seen():
    chance = random.Random(2)
    found = [
        {
            **row,
            "worker_mb": 180.0 if chance.random() < row["seconds"] / 3600 else 120.0,
            "worker_own_mb": 190.0,
        }
        for row in rows(lambda at: 300.0)
    ]
    result = {item["part"]: item for item in sampler.summary(found)}
    assert (result["worker"]["growth_mb"], result["worker"]["most_mb"]) == (0, 180.0)
    grown = [{**row, "worker_own_mb": 190.0 + row["seconds"] / 60} for row in found]
    assert {item["part"]: item["growth_mb"] for item in sampler.summary(grown)}["worker"] > 25


def test_each_chart_is_a_whole_svg_file_without_a_script_and_with_a_line_for_every_column(tmp_path):
    found = rows(lambda at: 100 + at / 100)
    result = charts.write(found, tmp_path)
    assert len(result) == len(charts.CHARTS)
    for path, chart in zip(result, charts.CHARTS, strict=True):
        tree = ElementTree.fromstring(path.read_text())
        kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert kinds == {"svg", "rect", "text", "path", "polyline"}
        assert sum(element.tag.endswith("polyline") for element in tree.iter()) == len(chart.lines)


def test_a_table_of_measurements_is_read_as_it_was_written(tmp_path):
    path, found = tmp_path / "soak.csv", rows(lambda at: float(at))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, sampler.COLUMNS)
        out.writeheader()
        out.writerows(found)
    assert sampler.read(path) == found


def test_the_page_shows_the_duration_and_subject_of_the_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "IMAGES", tmp_path / "img")
    folder = tmp_path / "sqlite+valkey"
    folder.mkdir()
    found = rows(lambda at: 300.0 + at)
    with (folder / "soak.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, sampler.COLUMNS)
        out.writeheader()
        out.writerows(found)
    (folder / "done.json").write_text('{"page": 7}')
    (folder / "faults.txt").write_text("one\n\n")
    reported = report.told(tmp_path, "sqlite+valkey")
    assert reported.startswith("### sqlite+valkey: 60 minutes\n")
    assert "7 rounds of work (7 page), 360 requests, 1 faults." in reported
    assert "| web | 300.0 | 3890.0 |" in reported
    assert report.told(tmp_path, "postgresql+redis") == ""
    assert [report.lasted(seconds) for seconds in (891, 7_200, 14_391)] == [
        "15 minutes",
        "2.0 hours",
        "4.0 hours",
    ]
