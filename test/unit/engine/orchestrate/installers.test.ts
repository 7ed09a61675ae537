import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import { StageOutputs } from "#engine/orchestrate/outputs.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { problemsIn } from "#support/problems.ts";
import { runDependencies, runRequest } from "#support/runs.ts";
import { inProject } from "#support/in-project.ts";

const OWN_INSTALLER = `params: { disk: { type: map, default: { serial: S1 } }, image: { type: map } }
steps:
  - { include: os-disk, with: { disk: "{{params.disk}}" } }
  - { id: ours, unless: grep -q ours /etc/os-release, command.run: { cmd: our-installer } }
  - { include: os-boot, with: { disk: "{{params.disk}}" } }
`;

/** Plans the shipped deploy_node for a node with these variables: the installing stages that run, and the dependencies and planned steps of `system`. */
async function deploy(vars: string, states: Readonly<Record<string, string>> = {}) {
  const disks = "disks: [{ serial: S1, use: os }]";
  return inProject(
    {
      "roster/r.yaml": `nodes:\n  n1: { address: 192.0.2.1, ${disks}, vars: { ${vars} } }\n`,
      ...states,
    },
    async (project) => {
      try {
        const deps = runDependencies(fakeNodes({}), [], {
          project,
          shipped: shippedRoot(),
          actions: findAction,
          actionNames,
        });
        const roster = loadRoster(project);
        const run = { id: "r1", challenge: "c", time: "2026-11-21T06:57:24Z", revision: "f128abb" };
        const catalogue = openCatalogue(deps, { roster, run }, registry);
        const what = { kind: "orchestration", name: "deploy_node" } as const;
        const plan = await preparePlan({ request: runRequest({ what, on: "n1" }), deps, roster, catalogue, run });
        const node = roster.nodes.get("n1");
        const scope = { ...(node && { node }), stages: new StageOutputs(new Map(), []).scope("n1") };
        const own = plan.stages.filter(({ id }) => ["clear", "image", "live", "flake", "system"].includes(id));
        const turns = own.filter(({ when }) => when?.(scope) !== false);
        const system = turns.find(({ id }) => id === "system");
        const rests = system?.task.kind === "apply" ? [...(system.task.dependencies?.(scope) ?? [])] : [];
        const planned = system && plan.planned?.get(system)?.planned;
        return { turns: turns.map(({ id }) => id), rests, planned };
      } catch (error) {
        return problemsIn(() => {
          throw error;
        });
      }
    },
  );
}

describe("the operating system that deploy_node installs", () => {
  it("is none where the roster has no installOs", async () =>
    expect(await deploy("")).to.deep.equal({ turns: [], rests: [], planned: undefined }));

  it("is Debian, from an image, after the stage that clears disks", async () => {
    const found = await deploy("installOs: debian");
    expect(found).to.deep.include({ turns: ["clear", "image", "system"], rests: ["image"] });
  });

  it("is NixOS, from a flake made after the live system's boot", async () => {
    const found = await deploy("installOs: nixos");
    expect(found).to.deep.include({ turns: ["clear", "live", "flake", "system"], rests: ["flake"] });
  });

  it("is refused before the run where it supports no encrypted root", async () => {
    expect(await deploy("installOs: nixos, encryptOs: true")).to.deep.equal([
      "states/system/nixos.yaml:19:14+50 the parameter “encryptOs” must be no [PARAM_INVALID]",
    ]);
  });

  it("comes from a state of the project, with an image only where the roster has osImage", async () => {
    const states = { "states/system/mine.yaml": OWN_INSTALLER };
    expect(await deploy("installOs: mine", states)).to.deep.include({ turns: ["clear", "system"], rests: ["image"] });
    const without = { "states/system/mine.yaml": OWN_INSTALLER.replace(", image: { type: map }", "") };
    expect(await deploy("installOs: mine", without)).to.deep.equal({
      turns: ["clear", "system"],
      rests: [],
      planned: 8,
    });
    expect(await deploy("installOs: mine, osImage: true", states)).to.deep.include({
      turns: ["clear", "image", "system"],
    });
  });

  it("is refused before the run where no state installs it", async () =>
    expect(await deploy("installOs: nixso")).to.deep.equal([
      "roster/r.yaml:2:3+2 there is no state “system/nixso”, which n1 asks for [STATE_NOT_FOUND] | did you mean “system/nixos”?",
    ]));
});
