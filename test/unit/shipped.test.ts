import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { loadOrchestration, listOrchestrations } from "#engine/orchestrate/load-orchestration.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { shippedRoot } from "#engine/project/shipped.ts";

const shipped = shippedRoot();
const states = statesOf({ project: join(shipped, "test"), shipped });
const folders = [{ path: join(shipped, "orchestrate"), shown: "orchestrate", origin: "shipped" as const }];
const files = (folder: string): string[] =>
  readdirSync(join(shipped, folder), { recursive: true, encoding: "utf8" }).filter((name) => name.includes("."));

describe("what is shipped", () => {
  for (const { name } of states.list()) {
    it(`the state ${name} is sound and says what it and its parameters are for`, () => {
      const { description = "", params } = states.load(name);
      expect(description.length).to.be.greaterThan(20);
      for (const { name: param, description: text = "" } of params.values()) expect(text, param).not.to.equal("");
    });
  }

  for (const name of listOrchestrations(folders).keys()) {
    it(`the orchestration ${name} is sound, and applies states that are there`, () => {
      const { stages } = loadOrchestration(name, folders);
      const known = states.list().map((state) => state.name);
      for (const { work } of stages)
        if (work.kind === "apply") for (const state of work.states) expect(known).to.include(state.name);
    });
  }

  it("every template is used", () => {
    const texts = files("states").map((name) => readFileSync(join(shipped, "states", name), "utf8"));
    for (const name of files("templates"))
      expect(
        texts.some((text) => text.includes(`template: ${name}`)),
        name,
      ).to.equal(true);
  });

  it("no unit needs a shell, and each is hardened", () => {
    for (const name of files("templates").filter((file) => file.endsWith(".service.hbs"))) {
      const text = readFileSync(join(shipped, "templates", name), "utf8");
      expect(text).to.match(/^ExecStart=\{\{params\.runtime\.command\}\} /m);
      for (const line of [
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "RestrictNamespaces=yes",
      ])
        expect(text.split("\n"), name).to.include(line);
    }
  });
});

describe("the shipped orchestration cluster", () => {
  it("is deploy_node for all nodes, and makes the CA first", () => {
    const read = (name: string): { stages: { id: string }[]; waves: unknown } =>
      parsePlainYaml(
        readFileSync(join(shipped, "orchestrate", `${name}.yaml`), "utf8").replaceAll(
          "params.node_name",
          "params.nodes",
        ),
      ) as never;
    const [cluster, deploy] = [read("cluster"), read("deploy_node")];
    expect(cluster.stages[0]).to.deep.equal({ id: "ca", run: "pki.createCluster", once: true });
    expect(cluster.stages.slice(1)).to.deep.equal(deploy.stages);
    expect(cluster.waves).to.deep.equal(deploy.waves);
  });
});
