"""The soak's own instruments: a leak is seen, a peak is not taken for one, and charts are whole SVG."""

from __future__ import annotations

import random
from xml.etree import ElementTree

from tests.soak import charts, sampler


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


def test_what_is_loaded_at_the_start_is_not_counted():
    found = rows(lambda at: min(300, 100 + at))
    assert sampler.growth(sampler.warmed(found), "web_mb") == 0


def test_each_chart_is_a_whole_svg_file_without_a_script_and_with_a_line_for_every_column(tmp_path):
    found = rows(lambda at: 100 + at / 100)
    made = charts.write(found, tmp_path)
    assert len(made) == len(charts.CHARTS)
    for path, chart in zip(made, charts.CHARTS, strict=True):
        tree = ElementTree.fromstring(path.read_text())
        kinds = {one.tag.rpartition("}")[2] for one in tree.iter()}
        assert kinds == {"svg", "rect", "text", "path", "polyline"}
        assert sum(one.tag.endswith("polyline") for one in tree.iter()) == len(chart.lines)


def test_a_table_of_measurements_is_read_as_it_was_written(tmp_path):
    import csv

    path, found = tmp_path / "soak.csv", rows(lambda at: float(at))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, sampler.COLUMNS)
        out.writeheader()
        out.writerows(found)
    assert sampler.read(path) == found
