import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { actionNames, findAction } from "#actions/registry.ts";
import { projectHooks } from "#cli/project/project-settings.ts";
import { registry } from "#engine/modules/registry.ts";
import { checkProject, type ProjectCheck, type CheckOptions } from "#engine/orchestrate/check-project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { inProject } from "#support/in-project.ts";

const roster = `nodes:
  n1: { address: 192.0.2.1, roles: [controller], vars: { mode: "0640" } }
  n2: { address: 192.0.2.2, roles: [worker], vars: { mode: "0999", site: a } }
`;

function check(files: Readonly<Record<string, string>>, more: Partial<CheckOptions> = {}): Promise<ProjectCheck> {
  const options = { shipped: shippedRoot(), actions: findAction, actionNames, modules: registry };
  return inProject({ "roster/r.yaml": roster, ...files }, (project) =>
    checkProject({ ...options, project, hooks: () => projectHooks(project), ...more }),
  );
}

/** Each problem as `FILE:LINE CODE`. */
async function placesIn(
  files: Readonly<Record<string, string>>,
  more?: Partial<CheckOptions>,
): Promise<readonly string[]> {
  const { problems } = await check(files, more);
  return problems.map(({ at, code }) => `${at?.file}:${at?.line} ${code}`);
}

const steps = (...list: readonly string[]): string => `steps:\n${list.map((step) => `  - ${step}\n`).join("")}`;

describe("checkProject", () => {
  it("finds no problem in the shipped files, read as a project", async () => {
    const { problems, states, orchestrations } = await check({}, { project: shippedRoot(), shipped: "/nowhere" });
    expect(problems).to.deep.equal([]);
    expect(states).to.include("certs");
    expect(orchestrations).to.include("deploy_node");
  });

  it("reports a hook of kcore.yaml whose state is not there, or that is none", async () => {
    const codes = async (text: string): Promise<readonly string[]> =>
      (
        await check({ "kcore.yaml": text, "states/emptied.yaml": steps("{ id: x, file.absent: { path: /x } }") })
      ).problems.map(({ code }) => code);
    expect(await codes("drain: { state: emptied, after: { state: kcore/stopped } }\n")).to.deep.equal([]);
    expect(await codes("drain: { state: emptid }\n")).to.deep.equal(["STATE_NOT_FOUND"]);
    expect(await codes("drain: {}\n")).to.have.length(1);
  });

  it("reports all problems of all files at once, ordered by place", async () => {
    const found = await placesIn({
      "roster/r.yaml": `${roster}  n3: { adress: 192.0.2.3 }\n`,
      "states/a.yaml": steps("{ id: x, servce.running: { name: sshd } }", "{ id: y, file.absent: { path: relative } }"),
      "states/b.yaml": steps("{ id: x, file.managed: { path: /x, template: none.hbs } }", "{ include: nowhere }"),
      "states/c.yaml": "steps: [",
      "templates/t.hbs": "{{#if}}",
      "orchestrate/o.yaml": "stages:\n  - { id: a, run: cluster.helth }\n  - { id: b, aply: [x] }\n",
    });
    expect(found).to.deep.equal([
      "orchestrate/o.yaml:3 STAGE_INVALID",
      "roster/r.yaml:4 YAML_KEY_UNKNOWN",
      "states/a.yaml:2 STATE_MODULE_UNKNOWN",
      "states/a.yaml:3 YAML_TYPE",
      "states/b.yaml:2 TEMPLATE_NOT_FOUND",
      "states/b.yaml:3 STATE_NOT_FOUND",
      "states/c.yaml:1 YAML_SYNTAX",
      "templates/t.hbs:1 EXPRESSION_SYNTAX",
    ]);
  });

  it("checks states of an action's onFailure stages for each of their nodes", async () => {
    const found = await placesIn({
      "states/s.yaml": steps('{ id: x, file.managed: { path: /x, content: "", mode: "{{node.vars.mode}}" } }'),
      "orchestrate/o.yaml": `stages:
  - { id: a, run: local.command, command: ["true"], onFailure: [{ id: undo, on: "*", apply: [s] }] }
`,
    });
    expect(found).to.deep.equal(["states/s.yaml:2 YAML_TYPE"]);
  });

  it("refuses a value inside quotes or a comment, and an answer of the run as a command of the bastion", async () => {
    const params = "params: { x: { type: string, required: true } }\n";
    const found = await check({
      "states/s.yaml": `${params}${steps(
        `{ id: a, wait.for: { command: 'test "{{shell params.x}}"' } }`,
        '{ id: b, cron.managed: { name: b, schedule: "@daily", command: "a # {{shell params.x}}" } }',
        `{ id: c, timer.managed: { name: c, onCalendar: daily, command: "echo '{{shell facts.os.id}}'" } }`,
      )}`,
      "orchestrate/o.yaml": `${params}stages:
  - { id: a, run: local.command, command: "echo a" }
  - { id: b, run: local.command, command: "echo '{{shell stages.a.stdout}}'" }
  - { id: c, run: local.command, command: "{{stages.a.stdout}}" }
  - { id: d, run: local.command, command: [sh, -c, "{{stages.a.stdout}}"] }
  - { id: e, run: local.command, command: "eval {{shell stages.a.stdout}}" }
  - { id: f, run: local.command, command: "{{params.x}}" }
  - { id: g, run: local.command, command: "true", unless: "{{stages.a.stdout}}" }
`,
    });
    const command = "an answer of the run must not be a command of the bastion";
    const misquoted = (place: string) => `this expression stands in ${place}, where its own quotes mean nothing`;
    expect(found.problems.map(({ at, code, message }) => `${at?.file}:${at?.line} ${code} ${message}`)).to.deep.equal([
      `orchestrate/o.yaml:4 EXPRESSION_UNQUOTED ${misquoted("quotes")}`,
      ...[5, 6, 9].map((line) => `orchestrate/o.yaml:${line} EXPRESSION_UNQUOTED ${command}`),
      ...["quotes", "a comment", "quotes"].map(
        (one, at) => `states/s.yaml:${at + 3} EXPRESSION_UNQUOTED ${misquoted(one)}`,
      ),
    ]);
  });

  it("refuses an answer of the run wherever a command of the bastion begins, and accepts it as an argument", async () => {
    const refused = [
      '"{{#if true}}{{stages.a.stdout}}{{/if}}"',
      '"{{shell stages.a.stdout}} a"',
      '"{{shell stages.a.stdout}} {{params.x}}"',
      '" \\"{{stages.a.stdout}}\\" a"',
      '"{{#with stages.a}}{{shell stdout}} a{{/with}}"',
      '"true && {{shell stages.a.stdout}}"',
      '"true\\n{{shell stages.a.stdout}}"',
      '[bash, "{{stages.a.stdout}}"]',
      '[/usr/bin/env, sh, -e, "{{#if true}}{{stages.a.stdout}}{{/if}}"]',
      '[bash, -ce, "{{stages.a.stdout}} a"]',
    ];
    const accepted = [
      '"{{#if (eq stages.a.stdout params.x)}}{{params.x}}{{/if}} a"',
      '"echo \\"a;{{stages.a.rc}}\\" \\\\\\n {{shell stages.a.stdout}}"',
      '[bash, x.sh, "{{stages.a.stdout}}"]',
      '[runuser, -u, "{{stages.a.stdout}}", --, id]',
      '[bash, -c, "echo \\"$1\\"", sh, "{{stages.a.stdout}}"]',
    ];
    const stages = [...refused, ...accepted].map(
      (command, at) => `  - { id: s${at}, run: local.command, command: ${command} }\n`,
    );
    const found = await check({
      "orchestrate/o.yaml": `params: { x: { type: string, required: true } }\nstages:\n  - { id: a, run: local.command, command: "echo a" }\n${stages.join("")}`,
    });
    expect(found.problems.map(({ at, code }) => `${at?.line} ${code}`)).to.deep.equal(
      refused.map((_, at) => `${at + 4} EXPRESSION_UNQUOTED`),
    );
  });

  it("parses every shell text as far as its values are known", async () => {
    const found = await check({
      "states/s.yaml": `params: { x: { type: string, required: true } }
steps:
  - { id: a, command.run: { cmd: "if true; then echo {{params.x}}" } }
  - { id: b, command.run: { cmd: "for {{#if params.x}}i in a; do{{/if}} echo" } }
  - { id: c, command.run: { cmd: "{{#if params.x}}echo ){{else}}echo ({{/if}}" } }
  - { id: d, unless: "echo (", command.run: { cmd: "true", revert: "echo 'a" } }
  - { id: e, wait.for: { command: "test -e /a && (" } }
  - { id: f, script.run: { interpreter: [python3], text: "if True: (" } }
  - { id: g, script.run: { interpreter: [/bin/bash], text: "a=(1 2); if" } }
  - { id: h, command.run: { argv: [sh, -c, "echo )"] } }
  - { id: i, command.run: { cmd: "{{params.x}}" } }
  - { id: j, command.run: { cmd: "for i in {{shell params.x}}; do echo \\"$i\\" >&2; done" } }
`,
      "orchestrate/o.yaml": `stages:
  - { id: a, run: local.command, command: "echo (", unless: "true" }
  - { id: b, run: local.command, command: [bash, -c, "fi"], onFailure: [{ id: c, run: local.command, command: "done" }] }
`,
    });
    const places = found.problems.map(({ at, code }) => `${code} ${at?.file}:${at?.line}:${at?.column}`);
    const inFile = (file: string, list: string) => list.split(" ").map((place) => `SHELL_SYNTAX ${file}.yaml:${place}`);
    expect(places).to.deep.equal([
      ...inFile("orchestrate/o", "2:43 3:54 3:111"),
      ...inFile("states/s", "3:34 4:34 5:34 6:22 6:68 7:35 9:60 10:44"),
    ]);
    expect(found.problems.map(({ message }) => message).join("\n")).to.match(/sh cannot parse this text, line 1: /);
  });

  it("accepts a shell text that is complete for some values of its blocks, or in bash only", async () => {
    const texts = [
      "if true; then {{#each params.hosts}}echo {{shell this}}\n{{/each}} fi",
      "if true; then\n{{#if params.a}}echo a{{/if}} {{#if params.b}}; echo b{{/if}}\nfi",
      "{{#if params.a}}if test -e /a; then{{/if}} {{#if params.b}}if test -e /b; then{{/if}} echo x; fi",
      "{{#unless params.a}}{{#if params.b}}if test -e /b; then{{/if}}{{/unless}} {{#if params.a}}if true; then{{/if}} echo x; fi",
      "diff <(a) <(b)",
    ];
    const steps = texts.map((cmd, at) => `  - { id: s${at}, command.run: { cmd: ${JSON.stringify(cmd)} } }\n`);
    const params = "params: { a: { type: boolean }, b: { type: boolean }, hosts: { type: list, default: [] } }\n";
    expect((await check({ "states/s.yaml": `${params}steps:\n${steps.join("")}` })).problems).to.deep.equal([]);
  });

  it("reports a name that no earlier stage registers or outputs", async () => {
    const found = await check({
      "states/s.yaml": `params: { key: { type: string, required: true } }
steps:
  - { id: a, key.generated: { path: /a.key }, register: key }
`,
      "states/t.yaml":
        "params: { key: { type: string, required: true } }\nsteps:\n  - { id: t, file.managed: { path: /t, content: '{{params.key}}' } }\n",
      "orchestrate/o.yaml": `stages:
  - { id: say, run: local.command, command: "true" }
  - { id: key, apply: s, on: "*", with: { key: a } }
  - { id: a, run: local.command, command: "echo {{shell stages.say.stdot}}" }
  - { id: b, apply: t, on: "*", with: { key: "{{stages.key.ky.facts}}" } }
  - { id: c, run: local.command, command: "echo {{shell stages.key.n1.ky}} {{shell stages.key.n9.key}}" }
  - { id: d, run: local.command, command: "echo {{shell stages.say.stdout}} {{shell stages.key.n2.key.x}}" }
`,
    });
    expect(found.problems.map(({ at, message, hint }) => `${at?.line}: ${message} | ${hint}`)).to.deep.equal([
      "4: “stages.say” has no “stdot” | did you mean “stdout”?",
      "5: “stages.key” has no “ky” | did you mean “key”?",
      "6: “stages.key.n1” has no “ky” | did you mean “key”?",
      "6: “stages.key” has no “n9” | did you mean “n1”?",
    ]);
  });

  it("requires each shipped action to list its outputs", async () => {
    for (const name of actionNames) expect((await findAction(name))?.outputs, name).to.be.an("array");
  });

  it("checks a state that no orchestration applies, as far as values do not matter", async () => {
    const state = `params:
  port: { type: integer, required: true }
  size: { type: integer, default: many }
steps:
  - { id: a, port.open: { port: "{{params.port}}", timeut: 3s } }
  - { id: b, file.managed: { path: "{{facts.os.id}}", content: "", mode: "999" } }
  - { id: c, when: "{{node.vars.some}}", file.managed: { path: /c, content: "{{parms.port}}" } }
  - { id: d, file.absent: { path: /d }, require: [z] }
  - { id: e, file.absent: { path: /e }, require: [other/x, other/z], when: "{{steps.known.changed}}" }
  - { id: f, each: "{{params.size}}", file.absent: { path: "{{item.path}}", recurse: maybe } }
`;
    const other = steps("{ id: x, file.absent: { path: /x }, register: known }");
    const lines = (await placesIn({ "states/s.yaml": state, "states/other.yaml": other })).join(", ");
    expect(lines.replaceAll("states/s.yaml:", "")).to.equal(
      "3 PARAM_INVALID, 5 YAML_KEY_UNKNOWN, 6 YAML_TYPE, 7 EXPRESSION_UNDEFINED, 8 STATE_REQUISITE_UNKNOWN, " +
        "9 STATE_REQUISITE_UNKNOWN, 10 YAML_TYPE",
    );
  });

  const web = `params: { mode: { type: string, required: true } }
${steps('{ id: a, file.managed: { path: /a, content: "", mode: "{{params.mode}}" } }')}`;

  it("checks the states of an orchestration with its arguments, for each node of the stage", async () => {
    const stage = (on: string, given = 'mode: "{{vars.mode}}"') =>
      placesIn({
        "states/web.yaml": web,
        "orchestrate/o.yaml": `stages: [{ id: a, on: "${on}", apply: [web], with: { ${given} } }]\n`,
      });
    expect(await stage("role:worker")).to.deep.equal(["states/web.yaml:3 YAML_TYPE"]);
    expect(await stage("role:controller")).to.deep.equal([]);
    expect(await stage("role:storage")).to.deep.equal(["orchestrate/o.yaml:1 TARGET_EMPTY"]);
    const both = ["orchestrate/o.yaml:1 PARAM_MISSING", "orchestrate/o.yaml:1 PARAM_UNKNOWN"];
    expect(await stage("n1", "mod: 1")).to.deep.equal(both);
  });

  it("checks a stage whose target is a parameter for problems of all nodes, or of the nodes of --on", async () => {
    const files = {
      "states/web.yaml": web,
      "orchestrate/o.yaml": `params: { who: { type: target, required: true }, limit: { type: duration } }
stages:
  - { id: a, on: "{{params.who}}", apply: [web], with: { mode: "{{vars.mode}}" }, timeout: "{{params.limit}}" }
  - { id: b, on: "{{params.who}}", apply: [web], with: { mode: "{{vars.none}}" } }
  - { id: c, on: n2, apply: [web], with: { mode: "{{vars.sit}}" } }
  - { id: d, run: wait, tcp: "{{params.limit}}", secs: 3 }
`,
    };
    const always = [4, 5].map((line) => `orchestrate/o.yaml:${line} EXPRESSION_UNDEFINED`);
    const all = [...always, "orchestrate/o.yaml:6 YAML_KEY_UNKNOWN"];
    expect([await placesIn(files), await placesIn(files, { on: "n1" })]).to.deep.equal([all, all]);
    expect(await placesIn(files, { on: "n2" })).to.deep.equal([...all, "states/web.yaml:3 YAML_TYPE"]);
  });

  it("reads no secret, and runs no command that would print one", async () => {
    await inProject({}, async (folder) => {
      const proof = join(folder, "proof");
      const state = `params: { pw: { type: secret, default: { command: "touch ${proof}" } } }
${steps('{ id: a, file.managed: { path: /a, content: "{{params.pw}}" }, sensitive: true }')}`;
      const stages = 'stages: [{ id: a, on: "*", apply: [s] }]\n';
      expect(await placesIn({ "states/s.yaml": state, "orchestrate/o.yaml": stages })).to.deep.equal([]);
      expect(existsSync(proof)).to.equal(false);
    });
  });

  it("checks all other files where the roster is empty or cannot be read", async () => {
    const files = {
      "states/a.yaml": steps('{ id: x, file.absent: { path: "{{nodes.n1.address}}" } }', "{ id: y, file.absent: {} }"),
      "orchestrate/o.yaml": "stages: [{ id: a, on: n1, apply: [a], btch: 3 }]\n",
    };
    const own = ["orchestrate/o.yaml:1 YAML_KEY_UNKNOWN", "states/a.yaml:3 YAML_KEY_MISSING"];
    expect(await placesIn({ ...files, "roster/r.yaml": "nodes: [" })).to.deep.equal([
      own[0],
      "roster/r.yaml:1 YAML_SYNTAX",
      own[1],
    ]);
    expect(await placesIn({ ...files, "roster/r.yaml": "nodes: {}\n" })).to.include.members(own);
  });
});
