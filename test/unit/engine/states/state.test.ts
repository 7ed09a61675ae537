import { expect } from "chai";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { trustOfProcess } from "#engine/project/project.ts";
import { statesOf, type States } from "#engine/states/open-states.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn } from "#support/problems.ts";

function using<T>(files: Readonly<Record<string, string>>, work: (states: States, project: string) => T): T {
  return inProject(files, (project) =>
    work(statesOf({ project, shipped: join(project, "shipped"), trust: trustOfProcess({}) }), project),
  );
}
const problems = (text: string, more: Readonly<Record<string, string>> = {}): string[] =>
  using({ "states/s.yaml": text, ...more }, (states) => problemsIn(() => states.load("s")));

const EMPTY = "steps: []\n";

describe("statesOf", () => {
  it("prefers a project's state to a shipped one, and lists both kinds", () =>
    using(
      {
        "states/a.yaml": "description: mine\nsteps: []\n",
        "shipped/states/a.yaml": "description: theirs\nsteps: []\n",
        "shipped/states/kcore/b.yaml": EMPTY,
        "states/.hidden.yaml": EMPTY,
        "states/broken.yaml": "a: [\n",
      },
      (states) => {
        expect(states.list()).to.deep.equal([
          { name: "a", origin: "project", shown: "states/a.yaml", description: "mine" },
          { name: "broken", origin: "project", shown: "states/broken.yaml" },
          { name: "kcore/b", origin: "shipped", shown: "states/kcore/b.yaml" },
        ]);
        expect(states.load("kcore/b").origin).to.equal("shipped");
      },
    ));

  it("refuses a state that others can write to (S-20)", () =>
    using({ "states/a.yaml": EMPTY }, (states, project) => {
      chmodSync(join(project, "states/a.yaml"), 0o646);
      expect(problemsIn(() => states.load("a"))[0]).to.include(
        "states/a.yaml can be written by others (mode 0646) [PROJECT_NOT_TRUSTED]",
      );
    }));

  it("reports a cycle of includes", () =>
    expect(
      problems("steps: [{ include: t }]\n", {
        "states/t.yaml": "steps:\n  - include: u\n",
        "states/u.yaml": "steps:\n  - include: s\n",
      }),
    ).to.deep.equal(["states/u.yaml:2:14+1 states include each other: s → t → u → s [STATE_INCLUDE_CYCLE]"]));

  it("checks included states, and reports an unknown one at its include", () =>
    expect(problems("steps:\n  - include: t\n  - include: nope\n", { "states/t.yaml": "steps: 5\n" })).to.deep.equal([
      "states/s.yaml:3:14+4 no state “nope” [STATE_NOT_FOUND] | kcore state list shows them all",
      "states/t.yaml:1:8+1 “steps” must be a list [YAML_TYPE]",
    ]));
});

describe("a state file", () => {
  it("has all its problems reported at once", () =>
    expect(
      problems(`description: [5]
parms: {}
steps:
  - id: a
    test.a: { text: y }
  - id: a
    test.a: {}
    test.b: {}
    requires: [b]
    require: [b, zz, a]
  - id: b
    when: "yes"
    onlyIf: "test {{params.x}} = {{shell params.x}}"
  - test.a: {}
  - include: "{{x}}"
  - id: "c {{x}}"
    test.a: { x: "{{#if}}" }
    register: a-b
  - include: t
    unless: x
`),
    ).to.deep.equal([
      "states/s.yaml:1:14+3 “description” must be a text [YAML_TYPE]",
      "states/s.yaml:2:1+5 no key “parms” is known here [YAML_KEY_UNKNOWN] | did you mean “params”?",
      "states/s.yaml:6:9+1 a step “a” is there already, in line 4 [STATE_ID_DUPLICATE] | give it an id of its own",
      "states/s.yaml:8:5+6 a step has exactly one module; this is a second one [STATE_STEP_INVALID] | make it a step of its own",
      "states/s.yaml:9:5+8 no step key or module “requires” [YAML_KEY_UNKNOWN] | did you mean “require”?",
      "states/s.yaml:10:15+1 no earlier step is called “b” [STATE_REQUISITE_UNKNOWN] | did you mean “a”?",
      "states/s.yaml:10:18+2 no earlier step is called “zz” [STATE_REQUISITE_UNKNOWN] | earlier steps: a",
      "states/s.yaml:11:5+5 the step has no module [STATE_STEP_INVALID] | add one, such as file.managed",
      "states/s.yaml:14:5+6 this test.a step has no id [STATE_STEP_INVALID] | id: a few words that tell what it does",
      "states/s.yaml:15:14+7 include names one state, written out, such as kcore/runtime [STATE_STEP_INVALID]",
      "states/s.yaml:16:9+9 “id” must be written out: it holds no expression [YAML_TYPE]",
      "states/s.yaml:17:26+1 the expression cannot be read: unexpected end of the text [EXPRESSION_SYNTAX] | see docs/templates.md",
      "states/s.yaml:18:15+3 “register” must be letters, digits and “_”, written out [YAML_TYPE]",
      "states/s.yaml:19:14+1 no state “t” [STATE_NOT_FOUND] | did you mean “s”?",
      "states/s.yaml:20:5+6 no step key or module “unless” [YAML_KEY_UNKNOWN] | step keys are include, with, id, when, each, require, tags; modules have a dot: file.managed",
    ]));

  it("is refused with a requisite that is a later step", () =>
    expect(
      problems("steps:\n  - { id: a, test.a: {}, require: [b, a, c] }\n  - { id: b, test.a: {} }\n"),
    ).to.deep.equal([
      "states/s.yaml:2:36+1 “b” stands below, in line 3 [STATE_REQUISITE_UNKNOWN] | steps run in file order: move it up",
      "states/s.yaml:2:39+1 “a” waits for itself [STATE_REQUISITE_UNKNOWN]",
      "states/s.yaml:2:42+1 no earlier step is called “c” [STATE_REQUISITE_UNKNOWN] | no step comes before it",
    ]));
});
