import { expect } from "chai";
import { join } from "node:path";
import { commandRun } from "#engine/modules/command-run.ts";
import { scriptRun } from "#engine/modules/script-run.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { draftSteps } from "#engine/states/draft.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { secret } from "#engine/step/secret.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";

const ROSTER = "nodes: { n1: { address: h1, vars: { x: vx } } }\n";

const modules = new Map<string, ModuleDefinition>([commandRun, scriptRun].map((module) => [module.name, module]));

/** Makes a step of these lines with this value of `params.x`. */
function make(step: string, x: unknown): Promise<unknown> {
  const type = Array.isArray(x) ? "list" : typeof x === "number" ? "integer" : "string";
  const params = `x: { type: ${type}, default: ${JSON.stringify(x)} }, y: { type: secret, default: "env:Y" }`;
  const state = `params: { ${params} }\nsteps:\n  - id: a\n    ${step}\n`;
  return inProject({ "roster/r.yaml": ROSTER, "states/s.yaml": state }, async (project) => {
    const { nodes } = loadRoster(project);
    return draftSteps(statesOf({ project, shipped: join(project, "shipped") }), {
      apply: [{ state: "s" }],
      node: nodes.get("n1") as NodeEntry,
      nodes,
      run: { id: "r1" },
      modules: (name) => Promise.resolve(modules.get(name)),
      moduleNames: [...modules.keys()],
      readSecret: () => Promise.resolve(secret("a;b")),
    });
  });
}
const refused = async (step: string, x: unknown): Promise<string> =>
  (await problemsOfRejection(make(step, x))).join("\n");
const quoted = (place: string) =>
  `${place} this value would stand unquoted in a shell text [EXPRESSION_UNQUOTED] | write {{shell params.x}}`;

describe("an expression in a text that a shell reads", () => {
  it("is refused where its value is not one plain word", async () => {
    for (const x of ["a b", "a;reboot", "$(id)", "`id`", "a\nb", "", "*", "~", "A=b", "'", "#", "ä"])
      expect(await refused('command.run: { cmd: "echo {{params.x}} done" }', x), x).to.equal(
        quoted("states/s.yaml:4:31+12"),
      );
  });

  it("is taken where it is: a number, a name, a path", async () => {
    for (const x of [8080, "nginx", "/etc/nginx/site.conf", "a@b.c:1,2", "--x", "1.2-3+4%"])
      await make('command.run: { cmd: "echo {{params.x}} done" }', x);
  });

  it("is taken where it quotes itself, of any value, in a branch and a loop, too", async () => {
    await make('command.run: { cmd: "echo {{shell params.x}}{{#if params.x}} {{shell params.x}}{{/if}}" }', "a;b");
    await make('command.run: { cmd: "echo{{#each params.x}} {{shell this}}{{/each}}" }', ["a b", "$c"]);
    const each = 'command.run: { cmd: "echo{{#each params.x}} {{this}}{{/each}}" }';
    expect(await refused(each, ["a", "$c"])).to.contain("write {{shell this}}");
    const named = 'command.run: { cmd: "echo{{#each params.x as |shell|}} {{shell}}{{/each}}" }';
    expect(await refused(named, ["a", "$c"])).to.contain("[EXPRESSION_UNQUOTED]");
    expect(await refused('command.run: { cmd: "echo {{concat params.x params.x}}" }', "a b")).to.contain(
      "write {{shell (concat …)}}",
    );
  });

  it("is a command of its own where it is the whole text, and no matter where no shell reads it", async () => {
    await make('command.run: { cmd: "{{params.x}}" }', "ls -l | wc -l");
    await make(
      'command.run: { argv: [echo, "-{{params.x}}-"], env: { A: "-{{params.x}}-" }, stdin: "-{{params.x}}-" }',
      "a;b",
    );
    await make('script.run: { text: "true", args: ["-{{params.x}}-"] }', "a;b");
  });

  it("is refused in a script's text, in what takes a command back, and when it is secret", async () => {
    expect(await refused('script.run: { text: "rm -r {{params.x}}/old" }', "a b")).to.equal(
      quoted("states/s.yaml:4:32+12"),
    );
    expect(await refused('command.run: { cmd: "true", revert: "echo {{params.x}}" }', "a b")).to.contain(
      "[EXPRESSION_UNQUOTED]",
    );
    expect(await refused('script.run: { text: "echo {{params.y}}" }', "a")).to.contain("write {{shell params.y}}");
  });

  it("is left alone in a script that another interpreter reads", async () => {
    await make(`script.run: { interpreter: [python3], text: "print('{{params.x}}')" }`, "a b");
    for (const shell of ["[/bin/bash]", "[busybox, sh]", "[/usr/bin/env, zsh]"])
      expect(
        await refused(`script.run: { interpreter: ${shell}, text: "echo {{params.x}}" }`, "a b"),
        shell,
      ).to.contain("[EXPRESSION_UNQUOTED]");
  });

  it("is told beside other mistakes, and though another value is not known yet", async () => {
    const late = 'command.run: { cmd: "echo {{params.x}}", cwd: "/{{facts.os.id}}" }';
    expect(await refused(late, "a b")).to.contain("[EXPRESSION_UNQUOTED]");
  });
});
