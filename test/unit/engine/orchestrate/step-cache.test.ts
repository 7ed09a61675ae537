import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { registry } from "#engine/modules/registry.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import { Conductor } from "#engine/orchestrate/conductor.ts";
import { StepCache } from "#engine/orchestrate/step-cache.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { applyStage, unresolvedStep, runDependencies, runRequest } from "#support/runs.ts";
import { inProject } from "#support/in-project.ts";

describe("StepCache", () => {
  it("returns steps once, keeps them for a limited number of nodes, and not for a stage with dependencies", () => {
    const cache = new StepCache(2);
    const [web, late] = [applyStage("web", [], []), applyStage("late", [], [], { dependencies: new Set(["web"]) })];
    for (const node of ["n1", "n2", "n3"]) cache.keep(web, node, [unresolvedStep(`web/${node}`)]);
    cache.keep(late, "n1", [unresolvedStep("late/n1")]);
    const taken = ["n1", "n1", "n2", "n3"].map((node) => cache.take(web, node)?.[0]?.id);
    expect([taken, cache.take(late, "n1")]).to.deep.equal([["web/n1", undefined, "web/n2", undefined], undefined]);
  });

  it("saves expanding states again when the run starts; files used instead of shipped ones are warned of", async () => {
    const nodes = ["n1", "n2", "n3"].map((name, index) => `  ${name}: { address: 192.0.2.${index + 1} }\n`);
    await inProject(
      {
        "roster/r.yaml": `nodes:\n${nodes.join("")}`,
        "states/web.yaml": `steps: [{ id: config, file.managed: { path: /etc/web, content: "{{node.name}}" } }]\n`,
        "states/nix.yaml": "steps: []\n",
      },
      async (project) => {
        const events: RunEventBody[] = [];
        const request = runRequest({ what: { kind: "state", names: ["web"] }, on: "*" });
        const deps = runDependencies(fakeNodes({ "web/config": {} }), events, {
          project,
          shipped: shippedRoot(),
        });
        const roster = loadRoster(project, {});
        const run = { id: "r", time: "t", revision: null };
        const opened = openCatalogue(deps, { roster, run }, registry);
        const expanded: string[] = [];
        const catalogue: typeof opened = {
          ...opened,
          expand: (use) => {
            expanded.push(use.node.name);
            return opened.expand(use);
          },
        };
        const plan = await preparePlan({ request, deps, roster, catalogue, run });
        await new Conductor(plan, request, deps).conduct();
        expect(events.filter(({ type }) => type === "step.finished")).to.have.lengthOf(3);
        expect(expanded).to.deep.equal(["n1", "n2", "n3"]);
        expect(plan.warnings).to.deep.equal([
          "states/nix.yaml of the project is used instead of the one that kcore ships",
        ]);
      },
    );
  });
});
