import { exitCodes, KcoreError } from "#errors/problem.ts";

/** Characters that a node may send about itself, without output, and more for each of its steps. */
const base = 16 << 20;
const ofStep = 128 << 10;
/** Characters of values that are kept at a time. */
const kept = 8 << 20;

/**
 * A limit on the frames of one node in a session. kcore's programs stay far below it, so a node above it is hostile or broken, and must
 * not harm the run's other nodes (requirement S-4).
 */
export class NodeBudget {
  readonly #node: string;
  readonly #countSteps: () => number;
  #spent = 0;
  #kept = 0;

  constructor(node: string, countSteps: () => number) {
    this.#node = node;
    this.#countSteps = countSteps;
  }

  /** Counts characters that the node sent, or the cost of work that it caused. @throws KcoreError NODE_LIMIT_EXCEEDED */
  spend(characters: number): void {
    this.#spent += characters;
    if (this.#spent > base + ofStep * this.#countSteps())
      throw this.exceeded("more about its steps than they can tell");
  }

  /** Counts characters that are kept until {@link release}. @throws KcoreError NODE_LIMIT_EXCEEDED */
  keep(characters: number): void {
    this.#kept += characters;
    if (this.#kept > kept) throw this.exceeded(`more than ${kept >> 20} MiB of values`);
  }

  release(characters: number): void {
    this.#kept -= characters;
  }

  exceeded(what: string): KcoreError {
    return limitExceeded(this.#node, what);
  }
}

/** The error for a node that sent more than any runner sends; `what` completes “sent …”. */
export function limitExceeded(node: string, what: string): KcoreError {
  return new KcoreError(
    {
      code: "NODE_LIMIT_EXCEEDED",
      message: `${node} sent ${what}, so nobody listens to it any more`,
      hint: `kcore's own programs do not: look what runs on ${node}, and who logged in there`,
    },
    { exitCode: exitCodes.failed },
  );
}
