import { withinCpuTime } from "#engine/step/within-cpu-time.ts";
import type { KcoreError } from "#errors/problem.ts";

const MAX_PATTERN = 200;

/** Whether a name matches a glob of `*`, `?` and `[abc]`, `[a-z]`, `[!a]`. A match takes at most as many steps as the product of both lengths. */
export function matchesGlob(glob: string, name: string): boolean {
  const parts = globParts(glob);
  let [part, at, star, restart] = [0, 0, -1, 0];
  while (at < name.length) {
    const here = parts[part];
    if (here === "*") [star, restart, part] = [part, at, part + 1];
    else if (here !== undefined && matchesOne(here, name[at] ?? "")) [part, at] = [part + 1, at + 1];
    else if (star !== -1) [part, restart, at] = [star + 1, restart + 1, restart + 1];
    else return false;
  }
  while (parts[part] === "*") part++;
  return part === parts.length;
}

/** `*`, `?`, a class with its brackets, or one character. */
function globParts(glob: string): string[] {
  return glob.match(/\[!?[^\]]+\]|[^]/g) ?? [];
}

function matchesOne(part: string, character: string): boolean {
  if (part === "?") return true;
  if (part.length === 1) return part === character;
  const isNegated = part[1] === "!";
  const set = part.slice(isNegated ? 2 : 1, -1);
  return inSet(set, character) !== isNegated;
}

function inSet(set: string, character: string): boolean {
  for (let at = 0; at < set.length; at++) {
    const low = set[at] ?? "";
    const isRange = set[at + 1] === "-" && at + 2 < set.length;
    const high = isRange ? (set[at + 2] ?? "") : low;
    if (character >= low && character <= high) return true;
    if (isRange) at += 2;
  }
  return false;
}

/**
 * The names in which a regular expression finds a match. An expression that backtracks for ever is stopped after a second.
 * @throws the error that `fail` makes, for an expression that is too long, too slow or not valid
 */
export function matchPattern(
  pattern: string,
  names: readonly string[],
  fail: (message: string) => KcoreError,
): readonly string[] {
  if (pattern.length > MAX_PATTERN) throw fail(`the regular expression is longer than ${MAX_PATTERN} characters`);
  let regex: RegExp;
  try {
    regex = new RegExp(pattern, "u");
  } catch (error) {
    throw fail(`not a regular expression: ${(error as Error).message.replace(/^.*: /, "")}`);
  }
  const found = withinCpuTime(() => names.filter((name) => regex.test(name)));
  if (found === undefined) throw fail("the regular expression takes too long");
  return found.value;
}
