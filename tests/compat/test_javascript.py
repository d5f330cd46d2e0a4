"""Programs written for `@automators/datamaker`, run unchanged against the application."""

from __future__ import annotations

import subprocess

PROGRAM = r"""
import { DataMaker, DataMakerError } from "@automators/datamaker";
import assert from "node:assert/strict";
const dm = new DataMaker({ projectId: process.env.DATAMAKER_PROJECT_ID, teamId: process.env.DATAMAKER_TEAM_ID });
const place = { projectId: process.env.DATAMAKER_PROJECT_ID, teamId: process.env.DATAMAKER_TEAM_ID };
const fields = [{ name: "n", type: "First Name", active: true }];
const made = await dm.templates.create({ name: "T", fields, ...place });
assert.deepEqual(await dm.templates.get(made.id), made);
assert.deepEqual((await dm.templates.list(place)).map((one) => one.id), [made.id]);
assert.equal((await dm.templates.update(made.id, { ...made, name: "U" })).name, "U");
assert.equal((await dm.http.post("/datamaker", { fields, quantity: 3 })).length, 3);
assert.ok((await dm.templates.delete(made.id)).message);
const project = await dm.projects.create({ name: "P", teamId: place.teamId });
assert.equal((await dm.projects.update(project.id, { name: "Q", teamId: place.teamId })).name, "Q");
assert.equal((await dm.projects.list()).length, 4);
assert.equal((await dm.projects.get(project.id)).teamId, place.teamId);
assert.ok((await dm.projects.delete(project.id)).message);
assert.deepEqual(await dm.http.get("/scenarios", { query: { projectId: place.projectId } }), []);
for (const call of [() => dm.sets.list(), () => dm.templates.get(made.id), () => dm.keymaps.list()]) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof DataMakerError);
    assert.equal(error.status, 404);
    assert.equal(error.body.code, "not_found");
    assert.equal(error.message, error.body.message);
    assert.match(error.message, /^There is no \S.* /);
    return true;
  });
}
console.log("done");
"""


def test_a_program_goes_through_all_that_is_there(modules, environment, cast):
    program = modules / "program.mjs"
    program.write_text(PROGRAM)
    done = subprocess.run(
        ["node", program], cwd=modules, env=environment(cast.adam), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"
