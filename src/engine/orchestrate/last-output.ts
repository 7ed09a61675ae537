import type { RunEventBody } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";

/** Knows the last step or action and its last output, for the problem of an expired time limit. */
export class LastOutput {
  #asked: string;
  #answer = "";

  /** `asked`: the work in progress before the first step. */
  constructor(asked = "") {
    this.#asked = asked;
  }

  hear(event: RunEventBody): void {
    switch (event.type) {
      case "step.started":
        this.#asked = `“${event.title}” (${event.module})`;
        this.#answer = "";
        break;
      case "step.note":
      case "step.output":
      case "action.note":
      case "action.output":
        this.#answer = event.text.trimEnd().split("\n").at(-1) ?? "";
        break;
      case "step.finished":
        if (event.changes?.length)
          this.#answer = event.changes
            .map(({ name, have, want }) => `${name}: ${have ?? "nothing"}, wanted ${want}`)
            .join("; ");
        break;
      default:
    }
  }

  /** `where`: the place of the work, such as `on n1`. */
  tell(where: string): Pick<Problem, "detail"> {
    if (this.#asked === "") return {};
    const answer = this.#answer === "" ? "it gave no answer" : `its last answer: ${this.#answer}`;
    return { detail: `at work ${where}: ${this.#asked}\n${answer}` };
  }
}
