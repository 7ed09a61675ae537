import { join } from "node:path";
import { expect } from "chai";
import { selectionOf } from "#cli/check/select-checks.ts";
import { foldersOf } from "#engine/project/folders.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { makeProject } from "#support/project.ts";
import type { TempDir } from "#support/temp-dir.ts";

describe("kcore check FILE …", () => {
  let project: TempDir;
  before(
    async () =>
      (project = await makeProject({
        "states/base.yaml": "steps: []\n",
        "states/web.yaml": "steps: [{ include: base }]\n",
        "states/site/one.yaml": "steps: [{ include: web }]\n",
        "states/other.yaml": "steps: []\n",
        "orchestrate/web.yaml": "stages: [{ id: a, on: n1, apply: [web] }]\n",
        "orchestrate/all.yaml": "stages: [{ include: web }]\n",
        "orchestrate/other.yaml": "stages: [{ id: a, on: n1, apply: [other] }]\n",
        "roster/r.yaml": "nodes: {}\n",
      })),
  );
  after(() => project.remove());

  const select = (...files: readonly string[]) => {
    const places = { project: project.path, shipped: "/nowhere" };
    const choice = { project: project.path, states: statesOf(places), folders: foldersOf("orchestrate", places) };
    const found = selectionOf(
      files.map((file) => join(project.path, file)),
      choice,
    );
    return found && { states: [...found.states].sort(), orchestrations: [...found.orchestrations].sort() };
  };

  it("checks also the states that include a given state, and the orchestrations that use a given file, transitively", () => {
    expect(select("states/base.yaml")).to.deep.equal({
      states: ["base", "site/one", "web"],
      orchestrations: ["all", "web"],
    });
    expect(select("orchestrate/web.yaml", "states/other.yaml")).to.deep.equal({
      states: ["other"],
      orchestrations: ["all", "other", "web"],
    });
    expect(select("orchestrate/all.yaml")).to.deep.equal({ states: [], orchestrations: ["all"] });
  });

  it("checks the whole project if a file of the roster is given", () =>
    expect(select("states/base.yaml", "roster/r.yaml")).to.equal(undefined));

  it("refuses a missing file, and a file outside the project", () => {
    expect(() => select("states/none.yaml")).to.throw(/there is no file .*none\.yaml/);
    expect(() => select("../../etc/passwd")).to.throw(/is no file of the project|there is no file/);
  });
});
