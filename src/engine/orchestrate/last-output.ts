import type { RunEventBody } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";

/** Keeps the last step or action and its last output, for the problem of an expired time limit. */
export class LastOutput {
  #work: string;
  #output = "";

  /** `work`: the work in progress before the first step. */
  constructor(work = "") {
    this.#work = work;
  }

  handle(event: RunEventBody): void {
    switch (event.type) {
      case "step.started":
        this.#work = `“${event.title}” (${event.module})`;
        this.#output = "";
        break;
      case "step.note":
      case "step.output":
      case "action.note":
      case "action.output":
        this.#output = event.text.trimEnd().split("\n").at(-1) ?? "";
        break;
      case "step.finished":
        if (event.changes?.length)
          this.#output = event.changes
            .map(({ name, have, want }) => `${name}: ${have ?? "nothing"}, wanted ${want}`)
            .join("; ");
        break;
      default:
    }
  }

  /** The detail of the problem. `where`: the place of the work, such as `on n1`. */
  describe(where: string): Pick<Problem, "detail"> {
    if (this.#work === "") return {};
    const answer = this.#output === "" ? "it gave no answer" : `its last answer: ${this.#output}`;
    return { detail: `at work ${where}: ${this.#work}\n${answer}` };
  }
}
