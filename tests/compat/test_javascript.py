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
const data = [{ id: 1, name: "Ada" }];
const saved = await dm.sets.save({ name: "golden", data });
assert.deepEqual((await dm.sets.get(saved.id)).data, data);
assert.deepEqual((await dm.sets.list(place)).map((one) => one.id), [saved.id]);
assert.equal((await dm.sets.update(saved.id, { locked: true })).locked, true);
await assert.rejects(() => dm.sets.delete(saved.id), (error) => error.status === 409);
await dm.sets.update(saved.id, { locked: false });
assert.ok((await dm.sets.delete(saved.id)).message);
const map = { mapName: "sap material/2026", object: "Material" };
assert.equal((await dm.keymaps.put({ ...map, entries: [{ oldKey: "OLD-1", newKey: "1" }] })).upserted, 1);
assert.deepEqual(await dm.keymaps.lookup({ ...map, oldKeys: ["OLD-1", "OLD-2"] }),
  { ...map, mappings: { "OLD-1": "1" }, missing: ["OLD-2"] });
assert.equal((await dm.keymaps.entries(map.mapName, { object: "Material" })).total, 1);
assert.equal((await dm.keymaps.list())[0].mapName, map.mapName);
assert.equal((await dm.keymaps.delete(map.mapName)).deleted, 1);
const policy = await dm.maskingPolicies.create({ name: "GDPR", fields: [{ field: "n", strategy: "redact" }] });
assert.deepEqual(await dm.maskingPolicies.get(policy.id), policy);
assert.deepEqual(await dm.maskingPolicies.list(place), [policy]);
assert.equal((await dm.maskingPolicies.update(policy.id, { consistent: false })).consistent, false);
assert.ok((await dm.maskingPolicies.delete(policy.id)).message);
const plan = await dm.http.post("/plans/save", { title: "Load" });
assert.deepEqual(await dm.plans.get(plan.id), plan);
assert.deepEqual(await dm.plans.list(), [plan]);
assert.equal((await dm.plans.update(plan.id, { status: "approved" })).status, "approved");
assert.deepEqual(await dm.plans.delete(plan.id), { success: true });
for (const call of [() => dm.sets.get(saved.id), () => dm.templates.get(made.id), () => dm.http.get("/shortcuts")]) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof DataMakerError);
    assert.equal(error.status, 404);
    assert.equal(error.body.code, "not_found");
    assert.equal(error.message, error.body.message);
    assert.match(error.message, /^There is no \S.* |^The call `GET \/shortcuts` does not exist\. /);
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
