import { expect } from "chai";
import { answerable, hookStateOf, outcomeReason } from "#rollout/hooks.ts";
import { Report, type RequestAction } from "#rollout/records.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { isUnbegun } from "#rollout/schedule.ts";
import type { RolloutInput } from "#rollout/rollout-input.ts";
import { casesOf } from "./cases/read.ts";
import { aNode, SteppedRollout } from "./stepped-rollout.ts";

/** The expected state: the phases of all nodes; or `phases`, `row NODE`, `hook NODE`, `answerable NODE`, `tells`, `unbegun`, `written` and fields of the progress, by name. */
type Expected = string | Readonly<Record<string, unknown>>;

interface Script {
  /** The nodes' names, each with its differences from a ready node. */
  readonly nodes?: string | Readonly<Record<string, object | null>>;
  readonly spec?: object;
  /** Changes of the input before the first decision. */
  readonly view?: Partial<RolloutInput>;
  /** Whether the nodes confirm their owner first; true by default. */
  readonly confirmed?: boolean;
  /** The actions, one after the other, each with the state that is expected after it. */
  readonly steps: readonly (string | Readonly<Record<string, Expected>>)[];
}

interface Scripts {
  /** The words that actions may use, each with its meaning: parts of reports, nodes, requests and inputs. */
  readonly words: Readonly<Record<string, object>>;
  readonly cases: Readonly<Record<string, Readonly<Record<string, Script>>>>;
}

/** A rollout that follows a script of a table. */
class ScriptedRollout {
  readonly rollout: SteppedRollout;
  readonly #words: Scripts["words"];
  /** The owner's knowledge at `mark`. */
  #mark: Partial<RolloutInput> = {};

  constructor(
    { nodes = "n1 n2", spec = {}, view = {}, confirmed = true }: Omit<Script, "steps">,
    words: Scripts["words"],
  ) {
    this.#words = words;
    const named =
      typeof nodes === "string" ? nodes.split(" ") : Object.entries(nodes).map(([id, more]) => aNode(id, more ?? {}));
    this.rollout = new SteppedRollout({ nodes: named, spec }).set(view);
    if (confirmed) this.rollout.confirm();
  }

  do(action: string): void {
    const { rollout } = this;
    const [, id = "", answer, hook = "", message] = /^(\S+) says (yes|no) to ([^,]+)(?:, (.*))?$/.exec(action) ?? [];
    if (answer) return void rollout.answer(id, hook, answer === "yes", message);
    const [first = "", verb = "", ...rest] = action.split(" ");
    const all = verb === "" ? [] : [verb, ...rest];
    switch (first) {
      case "confirm":
        return void rollout.confirm(...all);
      case "finish":
        return all.forEach((node) => rollout.finish(node));
      case "request":
        return void rollout.request(verb as RequestAction, this.#meant(rest));
      case "after":
        return void rollout.after(Number(verb));
      case "at":
        return void rollout.set({ now: Date.parse(verb) });
      case "set":
        return void rollout.set(this.#meant(all));
      case "remove":
        return void rollout.set({ nodes: new Map([...rollout.view.nodes].filter(([node]) => node !== verb)) });
      case "mark":
        this.#mark = {
          progress: rollout.view.progress,
          rows: rollout.view.rows,
          reports: new Map(),
          answers: new Map(),
        };
        return;
      case "takeover":
        return void rollout.takeOver(verb, this.#known(rest.join(" ")));
      default:
        if (verb === "is") return void rollout.node(first, this.#meant(rest));
        rollout.report(first, Report.shape.state.parse(verb), this.#meant(rest));
    }
  }

  check(expected: Expected, after: string): void {
    const { rollout } = this;
    if (typeof expected === "string") return expect(rollout.phases, after).to.equal(expected) && undefined;
    for (const [name, value] of Object.entries(expected)) {
      const [what = "", id = ""] = name.split(" ");
      const where = `${after}: ${name}`;
      if (what === "phases") expect(rollout.phases, where).to.equal(value);
      else if (what === "tells") sameText(outcomeReason(rollout.view), value, where);
      else if (what === "hook") sameText(hookStateOf(rollout.view, id, rollout.row(id)).next, value, where);
      else if (what === "answerable") expect(answerable(rollout.view, id, rollout.row(id)), where).to.equal(value);
      else if (what === "unbegun") expect(isUnbegun(rollout.view, rollout.progress), where).to.equal(value);
      else if (what === "written") expect(rollout.written.at(-1), where).to.deep.equal(value);
      else if (what === "row") hasAll(rollout.row(id), value as object, where);
      else hasAll(rollout.progress, { [name]: value }, where);
    }
  }

  #meant(words: readonly string[]): object {
    const parts = words.map((word) => this.#words[word]);
    if (parts.includes(undefined)) throw new Error(`no such word in “${words.join(" ")}”`);
    // YAML has no undefined.
    const given = Object.entries(Object.assign({}, ...parts) as object) as [string, unknown][];
    return Object.fromEntries(given.map(([name, value]) => [name, value ?? undefined]));
  }

  #known(how: string): Partial<RolloutInput> {
    if (how === "knowing nothing") return { progress: undefined, rows: new Map(), reports: new Map() };
    if (how === "knowing the reports") return { progress: undefined, rows: new Map() };
    return how === "knowing the mark" ? this.#mark : this.#meant(how === "" ? [] : how.split(" "));
  }
}

function sameText(found: string | undefined, wanted: unknown, where: string): void {
  const [, pattern] = /^\/(.*)\/$/.exec(String(wanted)) ?? [];
  if (pattern === undefined) expect(found, where).to.equal(wanted ?? undefined);
  else expect(found, where).to.match(new RegExp(pattern));
}

/** Compares each field; null means absent. */
function hasAll(found: object, wanted: object, where: string): void {
  for (const [field, value] of Object.entries(wanted) as [string, unknown][])
    if (value === null) expect(found, where).to.not.have.property(field);
    else if (typeof value === "string") sameText(String(found[field as keyof typeof found]), value, where);
    else expect(found, where).to.deep.include({ [field]: value });
}

/** Declares a test for each rollout of a file of test/cases. */
export function describeRollouts(file: string): void {
  const { words, cases } = casesOf<Scripts>(file);
  for (const [group, scripts] of Object.entries(cases))
    describe(group, () => {
      for (const [name, script] of Object.entries(scripts))
        it(name, () => {
          const { nodes, spec, view, confirmed, steps, ...unknown } = script;
          expect(unknown, "keys that no script has").to.deep.equal({});
          const scripted = new ScriptedRollout(omitUndefined({ nodes, spec, view, confirmed }), words);
          for (const step of steps)
            for (const [actions, expected] of Object.entries(typeof step === "string" ? { [step]: "" } : step)) {
              for (const action of actions === "at first" ? [] : actions.split("; ")) scripted.do(action);
              if (expected !== "") scripted.check(expected, actions);
            }
        });
    });
}
