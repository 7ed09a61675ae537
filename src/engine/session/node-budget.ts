import { exitCodes, KcoreError } from "#errors/problem.ts";
import { unescapeLine } from "#engine/program/frames.ts";
import type { SessionEffect } from "./session-events.ts";

/** Characters that a node may send beside the output of steps. */
const baseCharacters = 16 << 20;
/** Further characters for each of the node's steps. */
const charactersPerStep = 128 << 10;
/** Characters of values that are kept at a time. */
const maxKept = 8 << 20;

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
    if (this.#spent > baseCharacters + charactersPerStep * this.#countSteps())
      throw this.exceeded("more about its steps than they can tell");
  }

  /** Counts characters that are kept until {@link release}. @throws KcoreError NODE_LIMIT_EXCEEDED */
  keep(characters: number): void {
    this.#kept += characters;
    if (this.#kept > maxKept) throw this.exceeded(`more than ${maxKept >> 20} MiB of values`);
  }

  release(characters: number): void {
    this.#kept -= characters;
  }

  /** The error for this node; `what` completes “sent …”. */
  exceeded(what: string): KcoreError {
    return limitExceeded(this.#node, what);
  }
}

/** The error for a node that sent more than any runner sends; `what` completes “sent …”. */
export function limitExceeded(node: string, what: string): KcoreError {
  return new KcoreError(
    {
      code: "NODE_LIMIT_EXCEEDED",
      message: `${node} sent ${what}, so kcore listens to it no more`,
      hint: `kcore's own programs do not: look what runs on ${node}, and who logged in there`,
    },
    { exitCode: exitCodes.failed },
  );
}

/** Limits on facts, above those of every module and of kcore's own list. */
const factLimits = { names: 1000, name: 256, levels: 16 };

/**
 * Adds `NAME=VALUE` to the map and returns the number of characters that are kept; ignores a text of another form.
 * @throws KcoreError NODE_LIMIT_EXCEEDED (requirement S-4)
 */
export function setFact(facts: Record<string, string>, text: string, budget: NodeBudget): number {
  const at = text.indexOf("=");
  if (at <= 0) return 0;
  const name = text.slice(0, Math.min(at, factLimits.name + 1));
  if (name.length > factLimits.name) throw budget.exceeded(`a name of more than ${factLimits.name} characters`);
  if (name.split(".").length > factLimits.levels)
    throw budget.exceeded(`a name of more than ${factLimits.levels} levels`);
  if (!Object.hasOwn(facts, name) && Object.keys(facts).length >= factLimits.names)
    throw budget.exceeded(`more than ${factLimits.names} facts at once`);
  const value = unescapeLine(text.slice(at + 1));
  budget.keep(text.length);
  Object.defineProperty(facts, name, { value, enumerable: true, writable: true, configurable: true });
  return text.length;
}

/** Characters of a node's budget that an effect costs. */
export function costOf(effect: SessionEffect): number {
  switch (effect.do) {
    case "write-segment":
      // A runner that died, or seems to have died, makes the bastion send everything again.
      return effect.launch ? 128 << 10 : 4096;
    case "send-blobs":
      return 16 << 10;
    case "emit":
    case "report-segment":
      return 1024;
    default:
      return 0;
  }
}
