"""Write where the postal areas of the world are: `webapp/engine/data/extract_4/postal_areas.txt`.

python tools/postal_areas.py FILE

FILE is `allCountries.txt` of https://download.geonames.org/export/zip/ (CC BY 4.0). A postal area is all codes that
begin with the same two to four signs (in Great Britain: with the same letters). Its position is the median of its
places. The United States are left out: their codes are known by city.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import median

from webapp.engine.data.extract_4.postal import area_of

TARGET = Path(__file__).parent.parent / "webapp/engine/data/extract_4/postal_areas.txt"
FEWEST = 8
"""Countries with fewer areas are left out: their codes say too little about the place."""
FEWEST_CODES = 2
"""Countries with fewer codes for each area are left out: an area is more than one code."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    places: dict[str, dict[str, set[tuple[float, float]]]] = defaultdict(lambda: defaultdict(set))
    codes: dict[str, set[str]] = defaultdict(set)
    with parser.parse_args().file.open(encoding="utf-8") as lines:
        for line in lines:
            country, code, *_, latitude, longitude, _accuracy = line.rstrip("\n").split("\t")
            if latitude and longitude and country != "US":
                codes[country].add(code)
                places[country][area_of(country, code)].add((float(latitude), float(longitude)))
    comments = [line for line in TARGET.read_text("utf-8").splitlines() if line.startswith("#")]
    made = []
    for country, areas in sorted(places.items()):
        if len(areas) >= FEWEST and len(codes[country]) >= FEWEST_CODES * len(areas):
            centres = (
                (area, *map(median, zip(*points, strict=True))) for area, points in sorted(areas.items())
            )
            made.append(
                " ".join([country, *(f"{area}={north:.2f},{east:.2f}" for area, north, east in centres)])
            )
    TARGET.write_text("\n".join([*comments, *made]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
