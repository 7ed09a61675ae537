import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { AgentConfig } from "#agent/agent-config.ts";
import { readControllerConfig } from "#controller/controller-config.ts";
import { openTemplates } from "#engine/expressions/template.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { loadOrchestration, listOrchestrations } from "#engine/orchestrate/load-orchestration.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const shipped = shippedRoot();
const states = statesOf({ project: join(shipped, "test"), shipped });
const folders = [{ path: join(shipped, "orchestrate"), shown: "orchestrate", origin: "shipped" as const }];
const files = (folder: string): string[] =>
  readdirSync(join(shipped, folder), { recursive: true, encoding: "utf8" }).filter((name) => name.includes("."));

describe("npm ci", () => {
  it("builds kcore (prepare) by scripts that import nothing from test/", () => {
    const scripts = new Set(["build.ts"]);
    for (const name of scripts) {
      const text = readFileSync(join(shipped, "scripts", name), "utf8");
      expect(text, name).not.to.match(/["']#support\/|\/test\//);
      for (const [, other = ""] of text.matchAll(/"\.\/([\w-]+\.ts)"/g)) scripts.add(other);
    }
    expect([...scripts]).to.include("pretend-host.ts");
  });
});

describe("the check of Kubernetes' nodes", () => {
  const folder = folderOfEachTest("kubectl");

  for (const [status, found] of [
    ["Ready", ""],
    ["Ready,SchedulingDisabled", ""],
    ["NotReady", "n1 is NotReady\n"],
    ["NotReady,SchedulingDisabled", "n1 is NotReady,SchedulingDisabled\n"],
  ] as const)
    it(`finds ${found === "" ? "no fault in" : "a fault in"} ${status}`, () => {
      const { steps } = parsePlainYaml(readFileSync(join(shipped, "states/validate/services.yaml"), "utf8")) as {
        steps: { id: string; "command.run"?: { cmd: string } }[];
      };
      const cmd = steps.find(({ id }) => id === "Kubernetes nodes are ready")?.["command.run"]?.cmd ?? "";
      writeFileSync(join(folder(), "kubectl"), `#!/bin/sh\necho n1 ${status} worker 3d v1.30\n`, { mode: 0o755 });
      const env = { ...process.env, PATH: `${folder()}:${process.env["PATH"]}`, KUBECONFIG: "none" };
      const { status: code, stderr } = spawnSync("sh", ["-c", cmd], { env, encoding: "utf8" });
      expect([code, stderr]).to.deep.equal([found === "" ? 0 : 1, found]);
    });
});

describe("the shipped files", () => {
  const folder = folderOfEachTest("shipped");

  for (const { name } of states.list()) {
    it(`the state ${name} is valid and describes itself and its parameters`, () => {
      const { description = "", params } = states.load(name);
      expect(description.length).to.be.greaterThan(20);
      for (const { name: param, description: text = "" } of params.values()) expect(text, param).not.to.equal("");
    });
  }

  for (const name of listOrchestrations(folders).keys()) {
    it(`the orchestration ${name} is valid and applies existing states`, () => {
      const { stages } = loadOrchestration(name, folders);
      const known = states.list().map((state) => state.name);
      for (const { work } of stages)
        if (work.kind === "apply")
          for (const state of work.states.filter(({ each }) => each === undefined))
            expect(known).to.include(state.name);
    });
  }

  it("the state disks clears disks before it installs packages whose udev rules could activate old contents", () => {
    const ids = states.load("disks").steps.map(({ id }) => id);
    expect(ids.indexOf("clear")).to.be.within(0, ids.indexOf("partitioning tool"));
  });

  it("the milestones of deploy_node are those of the page on installing", () => {
    const { stages } = loadOrchestration("deploy_node", folders);
    const applied = stages.flatMap(({ work }) =>
      work.kind === "apply" ? work.states.flatMap(({ name, each }) => (each === undefined ? [name] : ["os-boot"])) : [],
    );
    const milestones = applied.flatMap((name) => {
      const text = readFileSync(join(shipped, "states", `${name}.yaml`), "utf8");
      return Array.from(text.matchAll(/^ {4}milestone: (.+)$/gm), ([, milestone = ""]) => milestone);
    });
    const page = readFileSync(join(shipped, "docs/cluster-install.md"), "utf8");
    const table = page.slice(page.indexOf("| milestone "), page.indexOf("## A machine without"));
    const told = Array.from(table.matchAll(/^\| `(\w+)`/gm), ([, milestone = ""]) => milestone);
    expect([...new Set(milestones)]).to.deep.equal(told);
  });

  it("every template is used", () => {
    const texts = files("states").map((name) => readFileSync(join(shipped, "states", name), "utf8"));
    for (const name of files("templates"))
      expect(
        texts.some((text) => text.includes(`template: ${name}`)),
        name,
      ).to.equal(true);
  });

  it("an agent's configuration names the given controllers, else the roster's, else the context's", () => {
    const templates = openTemplates([{ path: join(shipped, "templates"), shown: "templates", origin: "shipped" }]);
    const node = (name: string, roles: readonly string[]) => ({
      id: name,
      name,
      address: name,
      roles,
      dc: "DC1",
      labels: new Map(),
      stateDir: "/var/lib/kcore",
    });
    const render = (given: readonly string[], known: readonly string[], ...nodes: ReturnType<typeof node>[]) => {
      const params = {
        listen: ":9091",
        controllers: given,
        known,
        controllerPort: 9090,
        storageBackend: "lvm",
        lvm: new Map(),
        disableVxlan: false,
      };
      const scope = { params, node: nodes[0], nodes: new Map(nodes.map((each) => [each.name, each])) };
      return AgentConfig.parse(parsePlainYaml(String(templates.render("node-agent.yaml.hbs", scope)))).controllers;
    };
    const [worker, controller] = [node("w1", ["worker"]), node("c1", ["controller"])];
    expect(render([], ["192.0.2.9:9090"], worker)).to.deep.equal(["192.0.2.9:9090"]);
    expect(render([], ["192.0.2.9:9090"], worker, controller)).to.deep.equal(["c1:9090"]);
    expect(render(["192.0.2.8:9090"], ["192.0.2.9:9090"], worker, controller)).to.deep.equal(["192.0.2.8:9090"]);
    expect(render([], [], worker)).to.deep.equal([]);
  });

  it("a controller's configuration is the same after a rotation of keys, which are in controller-beginning.yaml", async () => {
    const templates = openTemplates([{ path: join(shipped, "templates"), shown: "templates", origin: "shipped" }]);
    const render = (name: string, beginning: object): string => {
      const node = { id: "n1", name: "n1", dc: "DC1" };
      const params = { listen: ":9090", manualApproval: false, beginning: new Map(Object.entries(beginning)) };
      return String(templates.render(name, { params, node }));
    };
    const [former, present] = ["a", "b"].map((digit) => digit.repeat(64)) as [string, string];
    const joins = (key: string) => ({ advertise: "n1:9090", join: ["n2:9090"], joinKeys: { "n2:9090": key } });
    const founds = (spki: string) => ({
      advertise: "n1:9090",
      join: [],
      joinKeys: {},
      rejoin: ["n2:9090"],
      bootstrap: { cluster: "lab", operators: [{ name: "ann", spki }], controller: { spki } },
    });
    const text = render("controller.yaml.hbs", founds(former));
    for (const beginning of [founds(present), joins(former), joins(present)])
      expect(render("controller.yaml.hbs", beginning)).to.equal(text);

    const [configFile, file] = [folder("x.yaml"), folder("beginning.yaml")];
    writeFileSync(configFile, text.replace("/etc/kcore/controller-beginning.yaml", file));
    const read = () => readControllerConfig({ configFile, parse: parsePlainYaml });
    const { replication: without } = await read();
    expect(without).to.deep.include({ join: [], rejoin: [], advertise: "n1:9090", controllerId: "n1" });
    for (const beginning of [founds(present), joins(present)]) {
      writeFileSync(file, render("controller-beginning.yaml.hbs", beginning));
      const { advertise, bootstrap, ...replication } = { bootstrap: undefined, ...beginning };
      const config = await read();
      expect(config.replication).to.deep.include({ ...replication, advertise, controllerId: "n1" });
      expect(config.bootstrap?.operators).to.deep.equal(bootstrap?.operators);
    }
  });

  it("a daemon's program checks a new configuration before it replaces the old one", () => {
    for (const [state, daemon] of [
      ["kcore/node-agent", "agent"],
      ["kcore/controller", "controller"],
    ] as const)
      expect(readFileSync(join(shipped, "states", `${state}.yaml`), "utf8")).to.contain(
        `kcore-node ${daemon} check --config %s`,
      );
    const check = (daemon: string, text: string): { readonly status: number | null; readonly stderr: string } => {
      writeFileSync(folder("x.yaml"), text);
      const words = [join(shipped, "src/cli/node-main.ts"), daemon, "check", "--config", folder("x.yaml")];
      return spawnSync(process.execPath, words, { encoding: "utf8" });
    };
    const tls = "tls: { caFile: /ca.crt, certFile: /x.crt, keyFile: /x.key }\n";
    expect(check("agent", tls)).to.include({ status: 0, stderr: "" });
    expect(check("agent", `controllers:\n${tls}`)).to.deep.include({ status: 2 });
    expect(check("agent", `controllers:\n${tls}`).stderr)
      .to.contain("CONFIG_INVALID")
      .and.to.contain("controllers");
    expect(check("controller", `${tls}replication: 7\n`).stderr).to.contain("CONFIG_INVALID");
    expect(check("updater", tls)).to.deep.include({ status: 2 });
  });

  it("a switch of the NixOS system does not restart the updater that runs it", () => {
    const text = readFileSync(join(shipped, "templates/kcore-updater.service.hbs"), "utf8");
    expect(text.split("[Service]")[1]?.split("\n")).to.include("X-RestartIfChanged=false");
  });

  it("S-7: units follow a profile, leave no core dump, and are hardened", () => {
    const everywhere = ["NoNewPrivileges=yes", "ProtectSystem=strict", "LimitCORE=0", "CoredumpFilter=0"];
    const daemons = [...everywhere, "CapabilityBoundingSet=", "RestrictNamespaces=yes"];
    const onboarding = "kcore-onboarding@.service.hbs";
    expect(readFileSync(join(shipped, "templates", onboarding), "utf8").split("\n")).to.include.members([
      ...daemons,
      "DynamicUser=yes",
      "PrivateNetwork=yes",
    ]);
    for (const name of files("templates").filter((file) => file.endsWith(".service.hbs") && file !== onboarding)) {
      const text = readFileSync(join(shipped, "templates", name), "utf8");
      const isUpdater = name === "kcore-updater.service.hbs";
      expect(text).to.match(
        isUpdater
          ? /^ExecStart=\/nix\/var\/nix\/profiles\/kcore-updater\/bin\/kcore-node updater /m
          : /^ExecStart=\/nix\/var\/nix\/profiles\/kcore\/bin\/kcore-node /m,
      );
      expect(text.split("\n"), name).to.include.members(isUpdater ? everywhere : daemons);
    }
  });
});

describe("the shipped orchestration cluster", () => {
  it("passes every parameter to deploy_node, with the same default", () => {
    const { stages, params } = loadOrchestration("cluster", folders);
    const [inclusion] = stages.at(-1)?.within ?? [];
    for (const { name, default: standard } of inclusion?.params.values() ?? []) {
      if (name === "node_name") continue;
      expect(inclusion?.with && plainOf(inclusion.with)).to.have.property(name, `{{params.${name}}}`);
      const own = params.get(name)?.default;
      expect(own && plainOf(own), name).to.deep.equal(standard && plainOf(standard));
    }
  });
});
