"""Measure how long a large `$metadata` document takes to parse: seconds, and how many times faster than
pyodata.

.venv/bin/python bench/odata_metadata.py [--types 2000]

The document is generated: entity types with keys, facets, labels and navigation, as in the services of an ERP
system. 2,000 types are 5 MB. pyodata only supports V2, so V4 is shown without comparison.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.connectors.odata import metadata

KINDS = (
    'Type="Edm.String" MaxLength="{length}"', 'Type="Edm.Decimal" Precision="13" Scale="3"', 'Type="Edm.Int32"',
    'Type="Edm.DateTime" Precision="7"', 'Type="Edm.Boolean"', 'Type="Edm.String" MaxLength="{length}"',
    'Type="Edm.Guid"', 'Type="Edm.Time" Precision="0"',
)  # fmt: skip
V4_TYPES = {"Edm.DateTime": "Edm.DateTimeOffset", "Edm.Time": "Edm.TimeOfDay"}


def v2(types: int, properties: int = 15) -> bytes:
    """Return an EDMX document of V2."""
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<edmx:Edmx Version="1.0"'
        ' xmlns:edmx="http://schemas.microsoft.com/ado/2007/06/edmx"'
        ' xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"'
        ' xmlns:sap="http://www.sap.com/Protocols/SAPData"><edmx:DataServices m:DataServiceVersion="2.0">\n'
        '<Schema Namespace="BIG" xmlns="http://schemas.microsoft.com/ado/2008/09/edm">\n'
    ]
    for index in range(types):
        parts.append(
            f'<EntityType Name="Thing{index}" sap:content-version="1"><Key><PropertyRef Name="Id"/></Key>\n'
            '<Property Name="Id" Type="Edm.String" Nullable="false" MaxLength="10" sap:label="Identifier"/>\n'
        )
        for number in range(properties):
            kind = KINDS[(index + number) % len(KINDS)].format(length=10 + number)
            parts.append(
                f'<Property Name="Property{number}" {kind} Nullable="true" sap:creatable="true"'
                f' sap:label="Label of {number}" sap:updatable="true" sap:sortable="false"/>\n'
            )
        if index:
            parts.append(
                f'<NavigationProperty Name="ToPrevious" Relationship="BIG.Link{index}" FromRole="From" ToRole="To"/>\n'
            )
        parts.append("</EntityType>\n")
    parts += [
        f'<Association Name="Link{index}"><End Type="BIG.Thing{index}" Multiplicity="*" Role="From"/>'
        f'<End Type="BIG.Thing{index - 1}" Multiplicity="0..1" Role="To"/></Association>\n'
        for index in range(1, types)
    ]
    parts.append('<EntityContainer Name="BIG_Entities" m:IsDefaultEntityContainer="true">\n')
    parts += [
        f'<EntitySet Name="Thing{index}Set" EntityType="BIG.Thing{index}" sap:creatable="true"/>\n'
        for index in range(types)
    ]
    parts += [
        f'<AssociationSet Name="Link{index}Set" Association="BIG.Link{index}">'
        f'<End EntitySet="Thing{index}Set" Role="From"/><End EntitySet="Thing{index - 1}Set" Role="To"/>'
        "</AssociationSet>\n"
        for index in range(1, types)
    ]
    parts.append("</EntityContainer></Schema></edmx:DataServices></edmx:Edmx>\n")
    return "".join(parts).encode()


def v4(types: int, properties: int = 15) -> bytes:
    """Return an EDMX document of V4, with labels as separate annotations."""
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<edmx:Edmx Version="4.0"'
        ' xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>\n'
        '<Schema Namespace="BIG" xmlns="http://docs.oasis-open.org/odata/ns/edm">\n'
    ]
    notes = []
    for index in range(types):
        parts.append(
            f'<EntityType Name="Thing{index}"><Key><PropertyRef Name="Id"/></Key>\n'
            '<Property Name="Id" Type="Edm.String" Nullable="false" MaxLength="10"/>\n'
        )
        for number in range(properties):
            kind = KINDS[(index + number) % len(KINDS)].format(length=10 + number)
            for old, new in V4_TYPES.items():
                kind = kind.replace(f'"{old}"', f'"{new}"')
            parts.append(f'<Property Name="Property{number}" {kind}/>\n')
            notes.append(
                f'<Annotations Target="BIG.Thing{index}/Property{number}">'
                f'<Annotation Term="com.sap.vocabularies.Common.v1.Label" String="Label of {number}"/></Annotations>\n'
            )
        if index:
            parts.append(
                f'<NavigationProperty Name="ToPrevious" Type="BIG.Thing{index - 1}" Nullable="true"/>\n'
            )
        parts.append("</EntityType>\n")
    parts.append('<EntityContainer Name="Container">\n')
    parts += [
        f'<EntitySet Name="Thing{index}Set" EntityType="BIG.Thing{index}">'
        f'<NavigationPropertyBinding Path="ToPrevious" Target="Thing{max(index - 1, 0)}Set"/></EntitySet>\n'
        for index in range(types)
    ]
    parts += ["</EntityContainer>\n", *notes, "</Schema></edmx:DataServices></edmx:Edmx>\n"]
    return "".join(parts).encode()


def theirs(document: bytes) -> float:
    """Return the seconds of pyodata."""
    from pyodata.v2.model import MetadataBuilder

    start = time.perf_counter()
    MetadataBuilder(document).build()
    return time.perf_counter() - start


def main() -> None:
    """Print one line per version."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", type=int, default=2_000)
    types = parser.parse_args().types
    for name, document in (("V2", v2(types)), ("V4", v4(types))):
        start = time.perf_counter()
        entities = metadata.metadata(metadata.read(document)).entities
        ours = time.perf_counter() - start
        line = f"{name}: {len(document) / 1_000_000:.1f} MB, {len(entities):,} entity sets, {ours:.2f} s"
        if name == "V2":
            other = theirs(document)
            line += f"; pyodata {other:.2f} s, ratio {other / ours:.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
