import { expect } from "chai";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { scriptRun } from "#engine/modules/script-run.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { withExpandedSteps } from "#support/expanded-steps.ts";
import { problemsOfRejection } from "#support/problems.ts";

const modules = new Map([fileManaged, scriptRun].map((module) => [module.name, module] as const));
const within = (type: string, step: string) => `params: { x: { type: ${type} } }\nsteps:\n  - { ${step} }\n`;
const files = {
  "files/debian.conf": "debian\n",
  "templates/debian.hbs": "debian\n",
  "sa.key": "a private key\n",
  "states/within.yaml": within("string", "id: in, file.managed: { path: /b, source: '{{params.x}}' }"),
  "states/outer.yaml": within("string", "id: out, include: within, with: { x: '{{params.x}}' }"),
  "states/of.yaml": within("map", "id: of, file.managed: { path: /b, source: '{{params.x.file}}' }"),
};

/** Renders this step once the fact os.id and the output of the step `find` have the value `answer`. */
function make(step: string, answer: string): Promise<unknown> {
  const find = "  - { id: find, file.managed: { path: /a, content: a }, register: find }\n";
  const params = "params: { files: { type: map, default: { debian: files/debian.conf } } }";
  const late = {
    facts: { os: { id: answer } },
    steps: new Map([["find", { stdout: answer, args: { path: "/b", source: answer } }]]),
  };
  const text = `${params}\nsteps:\n${find}  - id: a\n    ${step}\n`;
  const render = (drafts: readonly UnresolvedStep[]) => drafts.at(-1)?.render(late as never);
  return withExpandedSteps(
    { ...files, "states/s.yaml": text },
    modules as ReadonlyMap<string, ModuleDefinition>,
    render,
  );
}

describe("the name of a file of the bastion", () => {
  it("is refused if it is a fact or an output of a step", async () => {
    for (const step of [
      'file.managed: { path: /b, source: "{{facts.os.id}}" }',
      'file.managed: { path: /b, source: "{{steps.find.stdout}}" }',
      'file.managed: { path: /b, source: "{{lower facts.os.id}}" }',
      'file.managed: { path: /b, source: "files/{{facts.os.id}}" }',
      'file.managed: { path: /b, template: "x/{{steps.find.stdout}}" }',
      'include: within\n    with: { x: "{{facts.os.id}}" }',
      'script.run: { source: "files/{{trim steps.find.stdout}}" }',
      'file.managed: { path: /b, source: "{{#with steps.find}}{{this.stdout}}{{/with}}" }',
      'file.managed: { path: /b, source: "{{#with steps.find as |f|}}{{f.stdout}}{{/with}}" }',
      'file.managed: { path: /b, source: "files/{{#with steps.find}}{{stdout}}{{/with}}" }',
      `file.managed: { path: /b, source: "{{#each (split steps.find.stdout ',')}}{{this}}{{/each}}" }`,
      'file.managed: { path: /b, source: "{{@root.steps.find.stdout}}" }',
      `file.managed: { path: /b, source: "{{lookup (lookup (lookup this 'facts') 'os') 'id'}}" }`,
      'file.managed: { path: /b, source: "{{#with params.files}}{{../facts.os.id}}{{/with}}" }',
      'file.managed: "{{steps.find.args}}"',
      'include: within\n    with: { x: "files/{{facts.os.id}}" }',
      'include: within\n    with: { x: "{{#with steps.find}}{{stdout}}{{/with}}" }',
      'include: within\n    with: { x: "{{#if true}}{{steps.find.stdout}}{{/if}}" }',
      'include: outer\n    with: { x: "{{steps.find.stdout}}" }',
    ])
      for (const answer of ["../sa.key", "/etc/shadow", "./../sa.key"])
        expect((await problemsOfRejection(make(step, answer)))[0], step).to.contain(
          "a node's answer must not name a file of the bastion [EXPRESSION_TYPE]",
        );
    for (const source of [
      "{{facts.os.id}}",
      "./{{facts.os.id}}",
      "{{#if true}}{{facts.os.id}}{{/if}}",
      "{{#with steps.find}}{{stdout}}{{/with}}",
    ])
      expect((await problemsOfRejection(make(`script.run: { source: "${source}" }`, "sa.key")))[0], source).to.contain(
        "a node's answer",
      );
  });

  it("may contain a plain word of a fact or output, or be looked up by it", async () => {
    for (const step of [
      'file.managed: { path: /b, source: "files/{{facts.os.id}}.conf" }',
      'file.managed: { path: /b, source: "{{lookup params.files facts.os.id}}" }',
      'include: within\n    with: { x: "files/{{facts.os.id}}.conf" }',
      'include: outer\n    with: { x: "files/{{facts.os.id}}.conf" }',
      'include: within\n    with: { x: "{{lookup params.files facts.os.id}}" }',
      'include: of\n    with: { x: { file: files/debian.conf, host: "{{facts.os.id}}" } }',
      'file.managed: { path: /b, source: "files/{{#with facts.os}}{{id}}{{/with}}.conf" }',
      `file.managed: { path: /b, source: "{{#with params.files}}{{lookup this 'debian'}}{{/with}}" }`,
      `file.managed: { path: /b, source: "{{#if (eq facts.os.id 'debian')}}files/debian.conf{{/if}}" }`,
      'file.managed: { path: /b, template: "{{steps.find.stdout}}.hbs" }',
      'file.managed: { path: "/{{facts.os.id}}", content: "{{steps.find.stdout}}" }',
    ])
      expect(await make(step, "debian"), step).to.include({ kind: "step" });
  });
});
