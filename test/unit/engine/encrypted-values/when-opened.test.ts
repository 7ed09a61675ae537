import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import { preparePlan } from "#engine/orchestrate/prepare.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { placeText } from "#engine/encrypted-values/places.ts";
import { sealFor } from "#engine/encrypted-values/recipients.ts";
import { KcoreError } from "#errors/problem.ts";
import { fakeNodes } from "#support/fake-session.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { runDependencies, runRequest } from "#support/runs.ts";
import { person } from "#support/encrypted-values.ts";
import { inProject } from "#support/in-project.ts";

/** Names of the sealed values in the roster; each value's plain text is its name. */
const SEALED = ["token", "other", "deep"] as const;

describe("planning decrypts sealed values", () => {
  /** Plans a state on n1; the names of the values that were decrypted, sorted, one entry for each decryption. */
  async function plan(state: string, { refuse = false, extra = {} as Record<string, string> } = {}) {
    const { recipient } = await person("alice");
    const names = new Map<string, string>();
    const seal = async (file: string, path: readonly string[], name: string): Promise<string> => {
      const text = await sealFor(name, [recipient], placeText(file, path));
      names.set(text, name);
      return text;
    };
    const at = (name: string): readonly string[] => [
      "nodes",
      "n1",
      "vars",
      ...(name === "deep" ? ["map", name] : [name]),
    ];
    const [token, other, deep] = await Promise.all(SEALED.map((name) => seal("roster/r.yaml", at(name), name)));
    const text = state.replace("SEALED", await seal("states/s.yaml", ["params", "key", "default"], "key"));
    return inProject(
      {
        "roster/r.yaml": `nodes:\n  n1:\n    address: 192.0.2.1\n    vars:\n      token: ${token}\n      other: ${other}\n      map: { deep: "${deep}", plain: x }\n  n2: { address: 192.0.2.2 }\n`,
        "states/s.yaml": text,
        ...extra,
      },
      async (project) => {
        const opened: string[] = [];
        const readSecret = (reference: SecretReference, place?: { readonly line: number }): Promise<string> => {
          const name = names.get("age" in reference ? reference.age : "") ?? "?";
          if (refuse) throw new KcoreError({ code: "SECRET_IDENTITY", message: `line ${place?.line}` });
          opened.push(name);
          return Promise.resolve(name);
        };
        const deps = runDependencies(fakeNodes({}), [], { project, readSecret });
        const roster = loadRoster(project);
        const run = { id: "r1" };
        const catalogue = openCatalogue(deps, { roster, run }, registry);
        const request = runRequest({ what: { kind: "state", names: ["s"] }, on: "n1" });
        const node = roster.nodes.get("n1") as NodeEntry;
        const apply = [{ state: "s", given: new Map() }];
        const use = { node, apply, usedIds: new Set<string>(), registered: new Set<string>() };
        // Each decrypted value has the steps expanded again; their ids must stay.
        for (const { id } of await catalogue.expand(use)) expect(id).to.match(/^s\/[a-z]\d*$/);
        await preparePlan({ request, deps, roster, catalogue, run });
        return opened.toSorted();
      },
    );
  }
  const file = (content: string, more = ""): string =>
    `  - { id: f${content.length}, file.managed: { path: /f, content: "${content}" }${more} }\n`;

  const key = (from: string) => `params: { key: { type: secret, default: "${from}" } }\n`;
  const onDebian = ", when: \"{{eq facts.os.id 'debian'}}\"";
  const cases: readonly (readonly [title: string, steps: string, opened: readonly string[], params?: string])[] = [
    ["that a step's text contains", file("a={{vars.token}}"), ["token"]],
    ["that is the whole of an argument", file("{{vars.token}}"), ["token"]],
    ["once for all steps that use one", `${file("{{vars.token}}")}${file("b {{vars.token}}")}`, ["token"]],
    ["not for a step whose condition is false", `${file("{{vars.token}}", ", when: false")}${file("x")}`, []],
    ["not for a plain value in the same map", file("{{vars.map.plain}}"), []],
    ["that a step waiting for facts contains", file("{{facts.os.id}} {{vars.map.deep}}"), ["deep"]],
    ["in a block that depends on facts", file("{{#if (eq facts.os.id 'debian')}}{{vars.token}}{{/if}}"), ["token"]],
    ["of a step whose condition depends on facts", file("{{vars.other}}", onDebian), ["other"]],
    ["of a whole map that a step waiting for facts uses", file("{{facts.os.id}}{{json vars.map}}"), ["deep"]],
    ["not for a loop over all nodes", file("{{#each nodes}}{{this.address}}{{/each}}{{facts.os.id}}"), []],
    ["not of a parameter that no step uses", file("x"), [], key("SEALED")],
    ["of a parameter that a step uses", file("{{params.key}}"), ["key"], key("SEALED")],
    ["of vars that a used parameter's default names", file("{{params.key}}"), ["other"], key("{{vars.other}}")],
  ];
  for (const [title, steps, opened, params = ""] of cases)
    it(title, async () => expect(await plan(`${params}steps:\n${steps}`)).to.deep.equal(opened));

  it("in a command's stdin, and in a condition's comparison", async () => {
    const state = `steps:\n  - { id: a, when: "{{eq vars.other 'x'}}", command.run: { cmd: "true" } }\n  - id: b\n    command.run: { cmd: "cat", stdin: "{{vars.map.deep}}" }\n`;
    expect(await plan(state)).to.deep.equal(["deep", "other"]);
  });

  it("and reports one that cannot be decrypted at its place in the roster", async () =>
    expect(await problemsOfRejection(plan(`steps:\n${file("{{vars.other}}")}`, { refuse: true }))).to.deep.equal([
      "line 6 [SECRET_IDENTITY]",
    ]));

  it("but never a text that was put together and only looks like one", async () => {
    const state = `params: { key: { type: secret, default: "age:{{node.vars.raw}}" } }\nsteps:\n${file("{{params.key}}")}`;
    const raw = (await sealFor("x", [(await person("a")).recipient], placeText("roster/z.yaml", ["a"]))).slice(4);
    const group = `nodes:\n  n1:\n    address: 192.0.2.1\n    vars: { raw: ${raw} }\n`;
    // The text is taken literally, as the secret.
    expect(await plan(state, { extra: { "roster/r.yaml": group } })).to.deep.equal([]);
  });
});
