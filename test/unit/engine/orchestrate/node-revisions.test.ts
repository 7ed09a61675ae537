import { expect } from "chai";
import {
  isDesiredState,
  keepRevision,
  leavesOut,
  revisionOf,
  revisionWords,
} from "#engine/orchestrate/node-revisions.ts";
import type { NodeRevision } from "#engine/orchestrate/run-types.ts";
import { fleetTables } from "#tui/ink/fleet/section-rows.ts";
import { createTheme } from "#tui/ink/theme.ts";
import { fleetNode, fleetNow, smallFleet } from "#support/fleet.ts";
import { inProject } from "#support/in-project.ts";
import { runRequest } from "#support/runs.ts";

const revision = "be955e76c2f1aaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const kept = (id: string, more: Partial<NodeRevision> = {}): NodeRevision => ({
  id,
  run: "r1",
  at: 1,
  revision,
  dirty: false,
  isWhole: true,
  params: {},
  what: { kind: "state", names: ["web"] },
  ...more,
});

describe("the revisions of nodes", () => {
  it("are kept by node and id, and shown in one word", () =>
    inProject({}, (project) => {
      expect(revisionWords(project)).to.deep.equal(new Map());
      keepRevision(project, "n1", kept("a"));
      keepRevision(project, "n/2", kept("b", { dirty: true, isWhole: false }));
      keepRevision(project, "n3", { id: "c", at: 1, isWhole: true, params: {}, what: { kind: "state", names: [] } });
      const words = { a: "be955e76c2f1", b: "be955e76c2f1+dirty+part", c: "" };
      expect(Object.fromEntries(revisionWords(project))).to.deep.equal(words);
      expect(revisionOf(project, { name: "n1", id: "a" })).to.include({ revision, run: "r1" });
      expect(revisionOf(project, { name: "n1", id: "another machine" })).to.equal(undefined);
    }));

  it("are a part after a run that leaves steps out, but not after one for some nodes alone", () => {
    const part = (chosen: object) => leavesOut(Object.assign(runRequest({}), { part: chosen }));
    expect([
      leavesOut(runRequest({})),
      part({ limit: "n1" }),
      part({ only: ["web"] }),
      part({ tags: ["a"] }),
    ]).to.deep.equal([false, false, true, true]);
  });

  it("come from states and orchestrations, but from no look and no removal", () => {
    const orchestration = (name: string) => isDesiredState({ kind: "orchestration", name });
    expect([isDesiredState({ kind: "state", names: ["web"] }), orchestration("site")]).to.deep.equal([true, true]);
    expect(["validate", "node_work", "remove_node"].filter(orchestration)).to.deep.equal([]);
    expect(isDesiredState({ kind: "exec", argv: ["true"], shell: false })).to.equal(false);
  });

  it("stand on the fleet's page if a node has one", () => {
    const theme = createTheme({ depth: 0, background: "unknown", unicode: true });
    const headings = (nodes: readonly ReturnType<typeof fleetNode>[]) =>
      fleetTables({ ...smallFleet(), nodes }, { theme, now: fleetNow })[0]?.headings;
    expect(headings([fleetNode(1), fleetNode(2, { revision: "be955e76c2f1" })])).to.include("REVISION");
    expect(headings([fleetNode(1)])).to.not.include("REVISION");
  });
});
