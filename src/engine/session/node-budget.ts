import { exitCodes, KcoreError } from "#errors/problem.ts";

/** Characters that a node may say about itself and its steps, output not counted, and more of them for each of its steps. */
const base = 16 << 20;
const ofStep = 128 << 10;
/** Characters of it that are kept at a time. */
const kept = 8 << 20;

/**
 * What one node may say in a session. What its own programs say is a small part of it: over it the node means ill, or is
 * broken, and no other one may suffer for it (requirement S-4).
 */
export class NodeBudget {
  readonly #node: string;
  readonly #countSteps: () => number;
  #said = 0;
  #kept = 0;

  constructor(node: string, countSteps: () => number) {
    this.#node = node;
    this.#countSteps = countSteps;
  }

  /** Counts something that the node said, or made us do. @throws KcoreError NODE_LIMIT_EXCEEDED */
  spend(characters: number): void {
    this.#said += characters;
    if (this.#said > base + ofStep * this.#countSteps()) throw this.exceeded("more about its steps than they can tell");
  }

  /** Counts characters that are kept until they are released. @throws KcoreError NODE_LIMIT_EXCEEDED */
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

/** The node sent what no runner sends: `what` says what it was. */
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
