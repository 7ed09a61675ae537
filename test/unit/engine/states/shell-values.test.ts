import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { secret } from "#engine/step/secret.ts";
import { expandedSteps } from "#support/expanded-steps.ts";
import { problemsOfRejection } from "#support/problems.ts";

/** Makes a step of these lines with this value of `params.x`. */
function make(step: string, x: unknown): Promise<unknown> {
  const type = Array.isArray(x) ? "list" : typeof x === "number" ? "integer" : "string";
  const params = `x: { type: ${type}, default: ${JSON.stringify(x)} }, y: { type: secret, default: "env:Y" }`;
  const text = `params: { ${params} }\nsteps:\n  - id: a\n    ${step}\n`;
  return expandedSteps({ "states/s.yaml": text }, registry, { readSecret: () => Promise.resolve(secret("a;b")) });
}
const refused = async (step: string, x: unknown): Promise<string> =>
  (await problemsOfRejection(make(step, x))).join("\n");
const quoted = (place: string) =>
  `${place} this value would stand unquoted in a shell text [EXPRESSION_UNQUOTED] | write {{shell params.x}}`;

describe("an expression in a shell text", () => {
  it("is refused if its value is not one plain word", async () => {
    for (const x of ["a b", "a;reboot", "$(id)", "`id`", "a\nb", "", "*", "~", "A=b", "'", "#", "ä"])
      expect(await refused('command.run: { cmd: "echo {{params.x}} done" }', x), x).to.equal(
        quoted("states/s.yaml:4:31+12"),
      );
  });

  it("is accepted if its value is a plain word: a number, a name, a path", async () => {
    for (const x of [8080, "nginx", "/etc/nginx/site.conf", "a@b.c:1,2", "--x", "1.2-3+4%"])
      await make('command.run: { cmd: "echo {{params.x}} done" }', x);
  });

  it("is accepted with any value inside the helper shell, also in a block and a loop", async () => {
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

  it("is accepted as the whole command, and in texts that no shell reads", async () => {
    await make('command.run: { cmd: "{{params.x}}" }', "ls -l | wc -l");
    await make(
      'command.run: { argv: [echo, "-{{params.x}}-"], stdin: "-{{params.x}}-" }\n    environment: { A: "-{{params.x}}-" }',
      "a;b",
    );
    await make('script.run: { text: "true", args: ["-{{params.x}}-"] }', "a;b");
  });

  it("is refused in a script's text, in a revert command, and with a secret", async () => {
    expect(await refused('script.run: { text: "rm -r {{params.x}}/old" }', "a b")).to.equal(
      quoted("states/s.yaml:4:32+12"),
    );
    expect(await refused('command.run: { cmd: "true", revert: "echo {{params.x}}" }', "a b")).to.contain(
      "[EXPRESSION_UNQUOTED]",
    );
    expect(await refused('script.run: { text: "echo {{params.y}}" }', "a")).to.contain("write {{shell params.y}}");
  });

  it("is accepted in a script of another interpreter", async () => {
    await make(`script.run: { interpreter: [python3], text: "print('{{params.x}}')" }`, "a b");
    for (const shell of ["[/bin/bash]", "[busybox, sh]", "[/usr/bin/env, zsh]"])
      expect(
        await refused(`script.run: { interpreter: ${shell}, text: "echo {{params.x}}" }`, "a b"),
        shell,
      ).to.contain("[EXPRESSION_UNQUOTED]");
  });

  it("is refused although another value is not known yet", async () => {
    const late = 'command.run: { cmd: "echo {{params.x}}", cwd: "/{{facts.os.id}}" }';
    expect(await refused(late, "a b")).to.contain("[EXPRESSION_UNQUOTED]");
  });

  for (const step of [
    'wait.for: { command: "test -e {{params.x}}" }',
    'file.managed: { path: /a, content: a, validate: "check --as {{params.x}} %s" }',
    'file.block: { path: /a, name: a, content: a, validate: "check --as {{params.x}} %s" }',
    'file.line: { path: /a, line: a, validate: "check --as {{params.x}} %s" }',
    'cron.managed: { name: a, schedule: "@daily", command: "backup {{params.x}}" }',
    'timer.managed: { name: a, onCalendar: daily, command: "backup {{params.x}}" }',
    'timer.managed: { name: a, onCalendar: daily, command: [/bin/sh, -c, "backup {{params.x}}"] }',
    'logrotate.managed: { name: a, paths: [/a], postrotate: "kill {{params.x}}" }',
    'command.run: { argv: [sh, -c, "echo {{params.x}}"] }',
    'command.run: { argv: [/usr/bin/env, bash, -euc, "echo {{params.x}}"] }',
    'command.run: { argv: [su, nobody, -c, "echo {{params.x}}"] }',
    'script.run: { text: "echo a", revert: "echo {{params.x}}" }',
  ])
    it(`is refused in ${step}`, async () => {
      expect(await refused(step, "$(id)")).to.contain("write {{shell params.x}}");
      await make(step, "plain-word");
    });

  for (const [place, cmd, hint] of [
    ["in quotes", 'echo "{{shell params.x}}"', 'end the quotes before it: "a b"{{shell params.x}}'],
    ["in quotes", "echo '{{shell params.x}}'", "end the quotes before it"],
    ["in a comment", "# {{shell params.x}}\necho", "leave it out"],
    ["in a here-document", "cat <<END\n{{shell params.x}}\nEND", "print it: printf"],
    ["in back quotes", "echo `id {{shell params.x}}`", "write $(…) instead of back quotes"],
    [
      "in an arithmetic expansion",
      "echo $((1 + {{shell params.x}}))",
      "set a variable to it first: n={{shell params.x}}",
    ],
  ] as const)
    it(`is refused ${place}: ${JSON.stringify(cmd)}`, async () => {
      for (const key of ["command.run: { cmd:", "wait.for: { command:", 'command.run: { cmd: "true" }, unless:']) {
        const step = key.endsWith("unless:")
          ? `unless: ${JSON.stringify(cmd)}\n    command.run: { cmd: "true" }`
          : `${key} ${JSON.stringify(cmd)} }`;
        const problem = await refused(step, "a\nb");
        expect(problem).to.contain(
          `this expression stands ${place}, where its own quotes mean nothing [EXPRESSION_UNQUOTED]`,
        );
        expect(problem).to.contain(hint);
      }
    });

  it("is refused in a block that leaves quotes open, also with an unknown value", async () => {
    expect(await refused("command.run: { cmd: 'echo {{#if params.x}}\"{{/if}} {{shell params.x}}' }", "a")).to.contain(
      "this block opens quotes, or a here-document, that it does not close [EXPRESSION_UNQUOTED]",
    );
    expect(await refused("wait.for: { command: \"echo '{{shell facts.os.id}}'\" }", "a")).to.contain("in quotes");
  });

  it("is accepted behind a block with a comment that ends with the line, but not in a loop's comment", async () => {
    for (const cmd of [
      "{{#if params.x}}# nothing{{/if}}\necho {{shell params.x}}",
      "{{#if params.x}}echo a # it's{{else}}echo {{shell params.x}} # b{{/if}}  \necho {{shell params.x}}",
      "echo {{shell params.x}} {{#if params.x}}# it's{{/if}}",
      "{{#if params.x}}{{#if params.x}}# it's{{/if}}{{/if}}\necho {{shell params.x}}",
      'read -r a b <<< "$(uptime)"\necho {{shell params.x}}',
      "if ((1 << 2)); then\necho {{shell params.x}}\nfi",
    ])
      await make(`command.run: { cmd: ${JSON.stringify(cmd)} }`, "a\nb");
    for (const cmd of [
      "{{#if params.x}}# nothing{{/if}} echo {{shell params.x}}",
      "{{#each params.y}}# a {{/each}}\necho {{shell params.x}}",
      "# a{{#if params.x}} b{{/if}} {{shell params.x}}",
    ])
      expect(await refused(`command.run: { cmd: ${JSON.stringify(cmd)} }`, "a"), cmd).to.contain(
        "[EXPRESSION_UNQUOTED]",
      );
  });

  it("is accepted in quotes and comments if its value is one plain word", async () => {
    await make(`command.run: { cmd: 'echo "{{params.x}}" # {{params.x}}' }`, "a-b.c");
  });
});
