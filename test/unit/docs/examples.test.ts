import { existsSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { readSettings } from "#cli/project/project-settings.ts";
import { readManifests } from "#manifests/read-manifests.ts";
import { registry } from "#engine/modules/registry.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { readOwnModule } from "#engine/own-modules/own-module.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { readNotices } from "#engine/orchestrate/notices.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { mapValues } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { drawProblems } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { workflowFile } from "#support/github-jobs.ts";
import { pipelineFile } from "#support/gitlab-jobs.ts";
import { readPages, root } from "#support/pages.ts";
import { inProject } from "#support/in-project.ts";
import { runDependencies, runRequest } from "#support/runs.ts";
import { contextOf } from "#support/steps.ts";

const blocks = readPages().flatMap((page) => page.blocks);
const roster = blocks.find(({ page, text }) => page === "docs/rosters.md" && text.startsWith("# roster/"))?.text ?? "";
const hostKey = "AAAAC3NzaC1lZDI1NTE5AAAAIKZm3n2JHpAGgqzTBrYJKx8mVGdrcLiBZ0mGgLLdcW5b";
/** A value that age(1) sealed without a place; it replaces `age:…` of the pages. */
const sealed =
  "age:YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBYRlBjZXZzbERiT011ZEZRRmVqVnJFU3lPNzk1UGpmMHZ4ZDhuaUxtTERjCmF0ZFZpeUJWL1gvcHFQV1VuMERZV0ZBbndTNWI4V2NGdTdTOHh2WHhHMGsKLS0tIDVtUWp2bHh6S2NIMzI3QVBqTDF4VEdWTGphTThnOFZDMHdubms4SHVhMUEKQEZw7bgWJsOduF6HKgCQRviamVgcvcNVB0BnFpS0pBjhYBYT9/9yvDCKBQ==";

/** The modules that the pages write, by their files. */
const ownModules = Object.fromEntries(
  blocks.flatMap(({ text }) =>
    Array.from(text.matchAll(/^# (modules\/\S+\.yaml)\n/g), ([, name = ""]) => [name, text]),
  ),
);

/** The kind of a YAML block, by its first keys. */
function kindOf(example: unknown): string {
  if (Array.isArray(example)) return "on" in (example[0] as object) ? "notices" : "steps";
  const keys = Object.keys(example as object);
  if (keys.includes("jobs") || keys.includes("workflow")) return "pipeline";
  if (keys.includes("kind")) return "manifest";
  if (["drain", "runs", "reconcile", "queue"].some((key) => keys.includes(key))) return "settings";
  if (keys.includes("stages")) return "orchestration";
  if (keys.includes("probe")) return "module";
  if (keys.includes("steps")) return "state";
  if (keys.includes("nodes")) return "roster";
  if (keys.length === 1 && registry.has(keys[0] ?? "")) return "step";
  return "values";
}

const under = (key: string, text: string): string => `${key}\n${text.replaceAll(/^(?=.)/gm, "  ")}`;

/** Names that a snippet takes from `params` without declaring them. */
function paramsOf(text: string): readonly string[] {
  return [...new Set(Array.from(text.matchAll(/\bparams\.(\w+)/g), ([, name = ""]) => name))];
}

/** Checks an example as kcore does before it connects: every step is made for every node. */
const checks: Readonly<Record<string, (text: string) => Promise<void>>> = {
  manifest: async (text) => void (await Promise.resolve(readManifests("manifest.yaml", text))),
  // test/integration/cli/ci.test.ts runs its commands from the file that the page shows.
  pipeline: async (text) => {
    const shown = [workflowFile, pipelineFile].map((name) => readFileSync(join(root, name), "utf8"));
    await Promise.resolve(expect(shown).to.include(text));
  },
  notices: async (text) => {
    await Promise.resolve(inProject({ "notify.yaml": text }, (project) => readNotices(project, undefined)));
  },
  settings: async (text) => {
    await Promise.resolve(inProject({ "kcore.yaml": text }, (project) => void readSettings(project)));
  },
  module: async (text) => {
    const { module, example } = readOwnModule("site.example", parseSource("module.yaml", text));
    const { want } = await Promise.resolve(module.step(example, contextOf()));
    expect(Object.keys(want).length).to.be.above(0);
  },
  roster: (text) => plan({ "roster/r.yaml": text }, { what: { kind: "ping" }, on: "*" }),
  state: (text) => planState(text),
  steps: (text) => planState(`${paramLines(text, "string, default: '1'")}${under("steps:", text)}`),
  step: (text) => planState(under("steps:", `- id: example\n${text.replaceAll(/^(?=.)/gm, "  ")}`)),
  orchestration: (text) => {
    const whole = /^params:/m.test(text) ? text : `${paramLines(text, "target, required: true")}${text}`;
    const target = /type: target/.test(whole) ? { on: "*" } : {};
    return plan({ ...statesFor(text), "orchestrate/example.yaml": whole }, target);
  },
  values: (text) => {
    const scope = { params: { port: 9090 } };
    const values = mapValues(parseSource("values.yaml", text) as never, (node) => evaluate(node, scope));
    expect(values).to.deep.equal({ port: 9090, listen: "0.0.0.0:9090" });
    return Promise.resolve();
  },
};

function paramLines(text: string, type: string): string {
  const names = paramsOf(text);
  return names.length === 0 ? "" : under("params:", names.map((name) => `${name}: { type: ${type} }\n`).join(""));
}

/** A template is a file's content; the state gives the `params` that it uses. */
const templateState = `params:
  x: { type: string, default: x }
  tls: { type: boolean, default: true }
  hosts: { type: list, default: [a, b] }
steps:
  - id: example
    file.managed: { path: /etc/example, template: example.hbs }
`;

async function planTemplate(text: string): Promise<void> {
  const files = { "states/example.yaml": templateState, "templates/example.hbs": text };
  await plan(files, { what: { kind: "state", names: ["example"] }, on: "n1" });
}

async function planState(text: string): Promise<void> {
  const folders = Array.from(text.matchAll(/source: (files\/\w+)(?=,|\n)/g), ([, name = ""]) => [
    `${name}/index.html`,
    "",
  ]);
  const templates = Array.from(text.matchAll(/template: ([\w./-]+)/g), ([, name = ""]) => [
    `templates/${name}`,
    "text\n",
  ]);
  await plan(
    { "states/example.yaml": text, ...(Object.fromEntries([...templates, ...folders]) as Record<string, string>) },
    { what: { kind: "state", names: ["example"] }, on: "*" },
  );
}

/** The reader's own states that an orchestration applies, with the parameters that it passes. */
function statesFor(text: string): Readonly<Record<string, string>> {
  const { stages } = parsePlainYaml(text) as { stages: { apply?: string[]; with?: Record<string, unknown> }[] };
  const own = stages.flatMap(({ apply = [], with: given = {} }) =>
    apply.map((name) => [name, Object.keys(given)] as const),
  );
  const isShipped = (name: string) => existsSync(join(shippedRoot(), "states", `${name}.yaml`));
  return Object.fromEntries(
    own
      .filter(([name]) => !isShipped(name))
      .map(([name, params]) => [
        `states/${name}.yaml`,
        `params: { ${params.map((param) => `${param}: { type: string }`).join(", ")} }\nsteps: []\n`,
      ]),
  );
}

async function plan(files: Readonly<Record<string, string>>, request: Partial<RunRequest>): Promise<void> {
  const texts = Object.entries({ "roster/r.yaml": roster, ...ownModules, ...files });
  await inProject(
    Object.fromEntries(
      texts.map(([name, text]) => [name, text.replaceAll("AAAA…", hostKey).replaceAll("age:…", sealed)]),
    ),
    async (project) => {
      try {
        const deps = runDependencies(fakeNodes({}), [], {
          project,
          shipped: shippedRoot(),
          actions: findAction,
          actionNames,
          readSecret: () => Promise.resolve("a secret"),
        });
        const run = { id: "r1", challenge: "c", time: "2026-11-21T06:57:24Z", revision: "f128abb" };
        const loaded = loadRoster(project);
        const modules = openOwnModules({ project, shipped: shippedRoot() }).beside(registry);
        const catalogue = openCatalogue(deps, { roster: loaded, run }, modules);
        const asked = runRequest({ what: { kind: "orchestration", name: "example" }, dryRun: true, ...request });
        await preparePlan({ request: asked, deps, roster: loaded, catalogue, run });
      } catch (error) {
        if (error instanceof KcoreError)
          throw new Error(drawProblems(error.problems, { color: false }), { cause: error });
        throw error;
      }
    },
  );
}

describe("the examples of README and docs", () => {
  it("say what they are, so that none goes by unseen", () => {
    // The picture of mermaid is compared with the code (updates.test.ts).
    const known = /^(yaml( file=[\w.-]+)?|console( lab| blank)?|sh|text|ts|json|lua|handlebars|ini|mermaid)$/;
    expect(blocks.filter(({ info }) => !known.test(info)).map(({ at, info }) => `${at} ${info}`)).to.deep.equal([]);
  });

  for (const { at, info, text } of blocks)
    if (info.startsWith("yaml")) {
      const kind = kindOf(parsePlainYaml(text));
      it(`${at}: the ${kind} is accepted, down to each step of each node`, () => checks[kind]?.(text));
    }

  for (const { at, text } of blocks.filter(({ info }) => info === "handlebars"))
    it(`${at}: the template is rendered`, () => planTemplate(text));

  for (const { at, text } of blocks.filter(({ info }) => info === "ts"))
    it(`${at}: the names are those of the lab`, () => {
      stripTypeScriptTypes(text);
      const lab = ["lab.ts", "lab-node.ts", "place.ts", "record.ts"].map((name) =>
        readFileSync(join(shippedRoot(), "src/lab", name), "utf8"),
      );
      const members = Array.from(text.matchAll(/(?<=\.|[ ,{])(\w+)(?=\(|:)/g), ([name]) => name);
      expect(members.filter((name) => !new RegExp(`\\b${name}\\??[(:]`).test(lab.join("\n")))).to.deep.equal([]);
    });

  it("refuse what is wrong: a gate that cannot fail is none", async () => {
    const wrong: readonly [string, string][] = [
      ["state", "steps:\n  - id: a\n    package.installed: { pakcage: nginx }\n"],
      ["steps", "- include: kcore/agent\n"],
      ["roster", "nodes:\n  n1: { adress: 192.0.2.1 }\n"],
      ["orchestration", 'stages:\n  - { id: drain, run: lb.drain, each: "*" }\n'],
      ["manifest", "kind: Nodes\n"],
      ["settings", "drain: {}\n"],
      ["step", "package.installed: {}\n"],
      ["module", "summary: x\nprobe: fact a 1\n"],
      ["pipeline", "jobs: {}\n"],
      ["notices", "- { on: [failure] }\n"],
      ["settings", "runs: { requireclean: true }\n"],
    ];
    expect(await planTemplate("{{paramz.x}}").catch((error: unknown) => error)).to.be.instanceOf(Error);
    for (const [kind, text] of wrong) {
      const refusal: unknown = await checks[kind]?.(text).catch((error: unknown) => error);
      expect(refusal, text).to.be.instanceOf(Error);
    }
  });
});
