import { unescapeLine } from "#engine/program/frames.ts";
import type { NodeBudget } from "./node-budget.ts";

/** Limits on facts, above those of every module and of kcore's own list. */
const limits = { names: 1000, name: 256, levels: 16 };

/**
 * Adds `NAME=VALUE` to the map and returns the number of characters that are kept.
 * @throws KcoreError NODE_LIMIT_EXCEEDED (requirement S-4)
 */
export function setFact(facts: Record<string, string>, text: string, budget: NodeBudget): number {
  const at = text.indexOf("=");
  if (at <= 0) return 0;
  const name = text.slice(0, Math.min(at, limits.name + 1));
  if (name.length > limits.name) throw budget.exceeded(`a name of more than ${limits.name} characters`);
  if (name.split(".").length > limits.levels) throw budget.exceeded(`a name of more than ${limits.levels} levels`);
  if (!Object.hasOwn(facts, name) && Object.keys(facts).length >= limits.names)
    throw budget.exceeded(`more than ${limits.names} facts at once`);
  const value = unescapeLine(text.slice(at + 1));
  budget.keep(text.length);
  Object.defineProperty(facts, name, { value, enumerable: true, writable: true, configurable: true });
  return text.length;
}
